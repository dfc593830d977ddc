"""Validate a logged step, and convert its values to the form in which they are kept.

The schema's column types decide which Python values are accepted, so a new column needs no change
here. `store/checks/value_rules.py` has the rules about values, for this module and for `graphcredit
check`. Values are returned as Python scalars, text, and copies of arrays.
"""

import json
import math
from array import array
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from types import NoneType
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from graphcredit.store.checks.value_rules import VALUE_RULES, ValueRule
from graphcredit.store.errors import StepRefusedError
from graphcredit.store.schema import STEP_COLUMNS

FILLED = frozenset({"task_id", "trajectory_id", "step_index", "worker_id", "logged_at"})
"""Columns that the recorder fills; callers cannot log them."""

DEFAULTS: Mapping[str, bool | float] = {
    "is_action_valid": True,
    "cost": 1.0,
    "terminated": False,
    "truncated": False,
}
"""Default values of non-nullable columns that callers may leave out."""

_INT32 = np.iinfo(np.int32)
_INTEGERS = (int, np.integer)
_NUMBERS = (int, float, np.integer, np.floating)


_IMAGES = "a list of images: bytes of a file, or paths in the store's folder images/"
_TYPES = {column.name: column.type for column in STEP_COLUMNS}


class _RuleBrokenError(Exception):
    """A value does not fit its column; the message says what the column must be."""


def check_step(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of one step in the form in which they are kept, without nulls.

    Args:
        columns: Column name to value, from the caller.

    Raises:
        StepRefusedError: A rule is broken; the message names the column, the rule and the value.
    """
    kept: dict[str, Any] = {}
    for name, value in columns.items():
        if name not in _LOGGED:
            _refuse_column(name)
        if value is not None or name not in _NULLABLE:
            kept[name] = check_value(name, value)
    _check_end(kept)
    for rule in _RULES_OF_SEVERAL:
        if kept.get(rule.columns[0]) is not None:
            values = [kept.get(name) for name in rule.columns]
            if not rule.keeps(*values):
                raise StepRefusedError(f"{rule.holds}: got {' and '.join(map(_short, values))}")
    return kept


def check_value(name: str, value: object) -> Any:
    """Return one value of a column in the form in which it is kept.

    Raises:
        StepRefusedError: The value breaks a rule of its column.
    """
    try:
        kept = _AS_KEPT[name](value)
    except _RuleBrokenError as broken:
        raise StepRefusedError(f"{name} must be {broken}: got {_short(value)}") from None
    for rule in _RULES_OF_ONE[name]:
        if not rule.keeps(kept):
            raise StepRefusedError(f"{rule.holds}: got {_short(value)}")
    return kept


def _check_end(kept: Mapping[str, Any]) -> None:
    ends = kept.get("terminated", False) or kept.get("truncated", False)
    if ends and "success" not in kept:
        raise StepRefusedError(
            "success must be True or False on the step that ends a trajectory: got None"
        )
    if "success" in kept and not ends:
        raise StepRefusedError(
            "success must be set on the last step only, with terminated=True or truncated=True "
            f"(or by `end`): got {kept['success']}"
        )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _RuleBrokenError("a string")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _RuleBrokenError("text that UTF-8 can encode (no lone surrogates)") from None
    return str(value)


def _flag(value: object) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise _RuleBrokenError("True or False")
    return bool(value)


def _number(value: object) -> float:
    if not isinstance(value, _NUMBERS) or isinstance(value, bool):
        raise _RuleBrokenError("a number")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _integer(value: object) -> int:
    if not isinstance(value, _INTEGERS) or isinstance(value, bool):
        raise _RuleBrokenError("an integer")
    if not _INT32.min <= value <= _INT32.max:
        raise _RuleBrokenError("an integer of 32 bits")
    return int(value)


def _texts(value: object) -> list[str]:
    if not isinstance(value, (list, tuple)):
        raise _RuleBrokenError("a list of strings")
    return [_text(item) for item in value]


def _integers(value: object) -> np.ndarray:
    if isinstance(value, np.ndarray):
        if value.ndim != 1 or value.dtype.kind not in "iu":
            raise _RuleBrokenError("a list of integers, or a 1-dimensional array of them")
        fits = value.dtype == np.int32 or not value.size
        if not fits and not (_INT32.min <= value.min() and value.max() <= _INT32.max):
            raise _RuleBrokenError("integers of 32 bits")
        return value.astype(np.int32)
    return np.frombuffer(_array("i", value, "integers"), dtype=np.int32)


def _singles(value: object) -> np.ndarray:
    if isinstance(value, np.ndarray):
        if value.ndim != 1 or value.dtype.kind not in "fiu":
            raise _RuleBrokenError("a list of numbers, or a 1-dimensional array of them")
        return _as_float32(value)
    return np.frombuffer(_array("f", value, "numbers"), dtype=np.float32)


def _as_float32(value: np.ndarray) -> np.ndarray:
    if value.dtype == np.float32:
        return value.copy()
    with np.errstate(over="ignore"):
        return value.astype(np.float32)


def _array(code: str, value: object, what: str) -> "array[Any]":
    if not isinstance(value, (list, tuple)):
        raise _RuleBrokenError(f"a list of {what}, or a 1-dimensional array of them")
    try:
        return array(code, value)
    except TypeError:
        raise _RuleBrokenError(f"a list of {what}") from None
    except OverflowError:
        raise _RuleBrokenError(f"{what} of 32 bits") from None


def _images(value: object) -> list[dict[str, Any]]:
    if not isinstance(value, (list, tuple)):
        raise _RuleBrokenError(_IMAGES)
    return [_image(each) for each in value]


def _image(value: object) -> dict[str, Any]:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"bytes": bytes(value), "path": None}
    if isinstance(value, (str, PurePosixPath)):
        return {"bytes": None, "path": _text(str(value))}
    if not isinstance(value, Mapping) or value.keys() - {"bytes", "path"}:
        raise _RuleBrokenError(_IMAGES)
    content, path = value.get("bytes"), value.get("path")
    if not isinstance(content, (bytes, NoneType)):
        raise _RuleBrokenError(_IMAGES)
    return {"bytes": content, "path": None if path is None else _text(path)}


def _json(value: object) -> str:
    if isinstance(value, str):
        return _text(value)
    try:
        if isinstance(value, dict):
            return json.dumps(value, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        pass
    raise _RuleBrokenError("a JSON object: a dict of JSON values, or its text")


def _refuse_column(name: str) -> NoReturn:
    if name in FILLED:
        raise StepRefusedError(f"{name} is filled by the recorder: leave it out of `log`")
    raise StepRefusedError(f"steps has no column {name!r}; `log` takes {', '.join(_LOGGED)}")


def _short(value: object) -> str:
    if isinstance(value, (bytes, bytearray)) and len(value) > 24:
        return f"{len(value)} bytes"
    if isinstance(value, (list, tuple, np.ndarray)) and len(value) > 6:
        return f"{type(value).__name__} of {len(value)}: {list(value[:6])}…"
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:120]}…"


_OF_TYPE: dict[pa.DataType, Callable[[Any], object]] = {
    pa.string(): _text,
    pa.bool_(): _flag,
    pa.float64(): _number,
    pa.float32(): _number,
    pa.int32(): _integer,
    pa.list_(pa.string()): _texts,
    pa.list_(pa.int32()): _integers,
    pa.list_(pa.float32()): _singles,
    _TYPES["images"]: _images,
}
_AS_KEPT: dict[str, Callable[[Any], object]] = {
    column.name: _OF_TYPE[column.type] for column in STEP_COLUMNS if column.type in _OF_TYPE
} | {"extra": _json}
_RULES_OF_ONE: defaultdict[str, list[ValueRule]] = defaultdict(list)
for _rule in VALUE_RULES:
    if len(_rule.columns) == 1:
        _RULES_OF_ONE[_rule.columns[0]].append(_rule)
_RULES_OF_SEVERAL = [rule for rule in VALUE_RULES if len(rule.columns) > 1]
_LOGGED = {name: rule for name, rule in _AS_KEPT.items() if name not in FILLED}
_NULLABLE = frozenset(column.name for column in STEP_COLUMNS if column.nullable)
