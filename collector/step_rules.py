"""What a logged step must obey, and the form in which it is kept.

A column's rule follows from its type in the schema, so a new column needs no line here. Values come
back as plain Python scalars, text, and arrays that nobody else can change.
"""

import json
import math
from array import array
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from graphcredit.store.errors import StepRefusedError
from graphcredit.store.schema import STEP_COLUMNS

FILLED = frozenset({"task_id", "trajectory_id", "step_index", "worker_id", "logged_at"})
"""Columns the recorder fills; they cannot be logged."""

DEFAULTS: Mapping[str, bool | float] = {
    "is_action_valid": True,
    "cost": 1.0,
    "terminated": False,
    "truncated": False,
}
"""Values of the non-nullable columns that need not be logged."""

_INT32 = np.iinfo(np.int32)
_FLOAT32_MAX = float(np.finfo(np.float32).max)
_INTEGERS = (int, np.integer)
_NUMBERS = (int, float, np.integer, np.floating)


class _RuleBrokenError(Exception):
    """Says what must hold."""


def check_step(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the logged columns of one step as they are kept; null ones are left out.

    Args:
        columns: Column name to value, as the caller gave them.

    Raises:
        StepRefusedError: A rule is broken; the message names the column, the rule and the value.
    """
    kept: dict[str, Any] = {}
    for name, value in columns.items():
        rule = _LOGGED.get(name) or _refuse_column(name)
        if value is not None or name not in _NULLABLE:
            try:
                kept[name] = rule(value)
            except _RuleBrokenError as broken:
                raise _refused(name, broken, value) from None
    _check_end(kept)
    _check_lengths(kept)
    return kept


def check_value(name: str, value: object) -> Any:
    """Return one value of a column as it is kept.

    Raises:
        StepRefusedError: It breaks the rule of its column.
    """
    try:
        return _RULES[name](value)
    except _RuleBrokenError as broken:
        raise _refused(name, broken, value) from None


def _refused(name: str, broken: _RuleBrokenError, value: object) -> StepRefusedError:
    return StepRefusedError(f"{name} must be {broken}: got {_short(value)}")


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


def _check_lengths(kept: Mapping[str, Any]) -> None:
    logprobs = kept.get("response_logprobs")
    if logprobs is None:
        return
    ids = kept.get("response_ids")
    if ids is None or len(ids) != len(logprobs):
        found = "no response_ids" if ids is None else f"{len(ids)} response_ids"
        raise StepRefusedError(
            "response_logprobs must be one number for each of response_ids: "
            f"got {len(logprobs)} response_logprobs and {found}"
        )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _RuleBrokenError("a string")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _RuleBrokenError("text that UTF-8 can hold (no lone surrogates)") from None
    return str(value)


def _id(value: object) -> str:
    text = _text(value)
    if not text:
        raise _RuleBrokenError("a string that is not empty")
    return text


def _flag(value: object) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise _RuleBrokenError("True or False")
    return bool(value)


def _number(value: object, largest: float = math.inf) -> float:
    if not isinstance(value, _NUMBERS) or isinstance(value, bool):
        raise _RuleBrokenError("a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or abs(number) > largest:
        size = "" if largest == math.inf else f" of at most {largest:.3g} in size"
        raise _RuleBrokenError(f"a finite number{size}")
    return number


def _single(value: object) -> float:
    return _number(value, _FLOAT32_MAX)


def _positive(value: object) -> float:
    number = _number(value)
    if number <= 0:
        raise _RuleBrokenError("greater than 0")
    return number


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
        numbers = _as_float32(value)
    else:
        numbers = np.frombuffer(_array("f", value, "numbers"), dtype=np.float32)
    if not np.isfinite(numbers).all():
        raise _RuleBrokenError(f"finite numbers of at most {_FLOAT32_MAX:.3g} in size")
    return numbers


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


def _json_object(value: object) -> str:
    text = value if isinstance(value, str) else None
    try:
        parsed = value if text is None else json.loads(_text(text), parse_constant=_refuse_nan)
        if isinstance(parsed, dict):
            return text or json.dumps(parsed, allow_nan=False, ensure_ascii=True)
    except (ValueError, TypeError, RecursionError):
        pass
    raise _RuleBrokenError("a JSON object: a dict of JSON values, or its text")


def _refuse_nan(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _refuse_column(name: str) -> NoReturn:
    if name in FILLED:
        raise StepRefusedError(f"{name} is filled by the recorder: leave it out of `log`")
    raise StepRefusedError(f"steps has no column {name!r}; `log` takes {', '.join(_LOGGED)}")


def _short(value: object) -> str:
    if isinstance(value, (list, tuple, np.ndarray)) and len(value) > 6:
        return f"{type(value).__name__} of {len(value)}: {list(value[:6])}…"
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:120]}…"


_RULE_OF_TYPE: dict[pa.DataType, Callable[[Any], object]] = {
    pa.string(): _text,
    pa.bool_(): _flag,
    pa.float64(): _number,
    pa.float32(): _single,
    pa.int32(): _integer,
    pa.list_(pa.string()): _texts,
    pa.list_(pa.int32()): _integers,
    pa.list_(pa.float32()): _singles,
}
_RULES: dict[str, Callable[[Any], object]] = {
    column.name: _RULE_OF_TYPE[column.type]
    for column in STEP_COLUMNS
    if column.type in _RULE_OF_TYPE
} | {"task_id": _id, "trajectory_id": _id, "cost": _positive, "extra": _json_object}
_LOGGED = {name: rule for name, rule in _RULES.items() if name not in FILLED}
_NULLABLE = frozenset(column.name for column in STEP_COLUMNS if column.nullable)
