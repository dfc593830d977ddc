"""Validate a logged step, and convert its values to the form in which they are kept.

The schema's column types decide which Python values are accepted: a new column of a type that is in
`_OF_TYPE` needs no change here, and one of another type fails when this module is imported.
`store/checks/value_rules.py` has the rules about values, for this module and for `graphcredit
check`. Values are returned as Python scalars, text, and copies of arrays.
"""

import json
import math
from array import array
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from types import NoneType
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from graphcredit.store.checks.value_rules import VALUE_RULES, ValueRule
from graphcredit.store.errors import StepRefusedError
from graphcredit.store.schema import STEP_COLUMNS, Column

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


class _RuleBrokenError(Exception):
    """A value does not fit its column; the message says what the column must be."""


def check_step(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of one step in the form in which they are kept, without nulls.

    Raises:
        StepRefusedError: A rule is broken; the message names the column, the rule and the value.
    """
    kept: dict[str, Any] = {}
    for name, value in columns.items():
        if name not in _LOGGED:
            _refuse_column(name)
        if value is not None or name not in _NULLABLE:
            kept[name] = check_value(name, value)
    _check_end(kept, is_told="success" in columns)
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


def _check_end(kept: Mapping[str, Any], *, is_told: bool) -> None:
    ends = kept.get("terminated", False) or kept.get("truncated", False)
    if ends and not is_told:
        raise StepRefusedError(
            "success must be told on the step that ends a rollout: True, False, or None where "
            "its return is all that is known"
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


def _time(value: object) -> int:
    """Return the microseconds since 1970 of a time; one without a zone is in UTC."""
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
    except ValueError:
        pass
    if not isinstance(value, datetime):
        raise _RuleBrokenError("a time: a datetime, or ISO 8601 as text")
    zoned = value if value.tzinfo else value.replace(tzinfo=UTC)
    return (zoned - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _texts(value: object) -> list[str]:
    if not isinstance(value, (list, tuple)):
        raise _RuleBrokenError("a list of strings")
    return [_text(item) for item in value]


def _integers(value: object) -> np.ndarray:
    return _array(value, np.dtype(np.int32), "iu", "integers")


def _singles(value: object) -> np.ndarray:
    return _array(value, np.dtype(np.float32), "fiu", "numbers")


def _array(value: object, dtype: np.dtype[Any], kinds: str, what: str) -> np.ndarray:
    if isinstance(value, (list, tuple)):
        try:
            return np.frombuffer(array(dtype.char, value), dtype)
        except TypeError:
            raise _RuleBrokenError(f"a list of {what}") from None
        except OverflowError:
            raise _RuleBrokenError(f"{what} of 32 bits") from None
    if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype.kind not in kinds:
        raise _RuleBrokenError(f"a list of {what}, or a 1-dimensional array of them")
    if value.dtype == dtype:
        return value.copy()
    is_whole = dtype == np.int32 and value.size
    if is_whole and not (_INT32.min <= value.min() and value.max() <= _INT32.max):
        raise _RuleBrokenError("integers of 32 bits")
    with np.errstate(over="ignore"):
        return value.astype(dtype)


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


ARRAYS: Mapping[pa.DataType, Any] = {
    pa.list_(pa.int32()): np.int32,
    pa.list_(pa.float32()): np.float32,
}
"""Types of columns whose values are kept as arrays, and the type of their items."""

_OF_TYPE: Mapping[pa.DataType, Callable[[Any], object]] = {
    pa.string(): _text,
    pa.bool_(): _flag,
    pa.float64(): _number,
    pa.float32(): _number,
    pa.int32(): _integer,
    pa.timestamp("us", tz="UTC"): _time,
    pa.list_(pa.string()): _texts,
    pa.list_(pa.int32()): _integers,
    pa.list_(pa.float32()): _singles,
    pa.list_(pa.struct([("bytes", pa.binary()), ("path", pa.string())])): _images,
}
"""Makes a value of a column of a type the one that is kept. What it returns is an array if the type
is in `ARRAYS`, else JSON can express it, images excepted."""


def kept_by_type(columns: Sequence[Column]) -> dict[str, Callable[[Any], object]]:
    """Return the function of `_OF_TYPE` for each column.

    Raises:
        TypeError: There is none for the type of a column.
    """
    for column in columns:
        if column.type not in _OF_TYPE:
            raise TypeError(
                "the recorder must know the type of each column in store/schema.py: it does not "
                f"know {column.type}, that of {column.name}. Say in `_OF_TYPE` of "
                "collector/recording/validation.py which values such a column takes"
            )
    return {column.name: _OF_TYPE[column.type] for column in columns}


_AS_KEPT = kept_by_type(STEP_COLUMNS) | {"extra": _json}
_RULES_OF_ONE: defaultdict[str, list[ValueRule]] = defaultdict(list)
for _rule in VALUE_RULES:
    if len(_rule.columns) == 1:
        _RULES_OF_ONE[_rule.columns[0]].append(_rule)
_RULES_OF_SEVERAL = [rule for rule in VALUE_RULES if len(rule.columns) > 1]
_LOGGED = [name for name in _AS_KEPT if name not in FILLED]
_NULLABLE = frozenset(column.name for column in STEP_COLUMNS if column.nullable)
