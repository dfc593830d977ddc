"""Values of foreign JSON: objects, numbers, names, verdicts, and fields by path."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from graphcredit.collector.importers.logs.json_text import parse_json_text
from graphcredit.store.errors import InputError


class RecordError(InputError):
    """A record is not what its format says; the message says what must hold and what was found.

    Readers and rules raise it anywhere; `reading` names the record that it is about.
    """


MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError)
"""What a reader may raise of a record whose parts have other types than its format says."""


NESTED = ("meta", "metadata", "info", "result", "evaluation_result", "input_metadata")
"""Fields whose own fields may name task, reward and success."""


def fields_of(value: object) -> Mapping[str, Any]:
    """Return a JSON object; an empty one for every other value."""
    if value is None:  # the most frequent ones are quick to see
        return {}
    is_object = type(value) is dict or isinstance(value, Mapping)
    return cast("Mapping[str, Any]", value) if is_object else {}


@lru_cache(maxsize=4096)
def snake_case(name: str) -> str:
    """Return a name in lower case, its words parted by underscores: `taskId` is `task_id`."""
    return _WORDS.sub("_", name).lower()


_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|-")


def snake_cased(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an object with the names of its fields in snake case; those that are so win."""
    others = [name for name in row if not name.islower()]
    return {**{snake_case(name): row[name] for name in others}, **row} if others else row


def as_mapping(value: object, what: str) -> Mapping[str, Any]:
    """Return a JSON object."""
    if isinstance(value, (dict, Mapping)):  # first the type that is quick to see
        return cast("Mapping[str, Any]", value)
    raise RecordError(f"{what} must be a JSON object: got {short(value)}")


def as_list(value: object, what: str) -> list[Any]:
    """Return a JSON list."""
    if not isinstance(value, list):
        raise RecordError(f"{what} must be a list: got {short(value)}")
    return cast("list[Any]", value)


def items_of(value: object) -> list[Any]:
    """Return the items of a JSON list; none of any other value."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_objects(value: object, what: str, item: str) -> list[Mapping[str, Any]]:
    """Return a list of JSON objects; an empty one for null."""
    return [as_mapping(each, item) for each in as_list(value or [], what)]


def without(row: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the fields of an object that are not null, but for some."""
    return {name: value for name, value in row.items() if name not in names and value is not None}


_encode = json.JSONEncoder(sort_keys=True, ensure_ascii=False, default=str).encode
_encode_as_is = json.JSONEncoder(ensure_ascii=False, default=str).encode
_quoted = json.encoder.encode_basestring


def canonical(value: object) -> str:
    """Return JSON text for the reader, which is equal for equal values."""
    if type(value) is not dict:
        return _encode(value)
    # Most calls have a few texts and numbers: that is quicker than to make an encoder.
    fields = cast("dict[Any, Any]", value)
    parts: list[str] = []
    for name in sorted(fields):
        field = fields[name]
        if type(name) is str and type(field) is str:
            parts.append(f"{_quoted(name)}: {_quoted(field)}")
        elif type(name) is str and type(field) is int:
            parts.append(f"{_quoted(name)}: {field}")
        else:
            return _encode(value)
    return f"{{{', '.join(parts)}}}"


def json_text(value: object) -> str:
    """Return JSON text with the fields in their order, as a tool writes it."""
    return _encode_as_is(value)


def canonical_text(value: object) -> str:
    """Return arguments of a call as canonical JSON, also where the log has them as JSON text."""
    if not isinstance(value, str):
        return "" if value is None else canonical(value)
    if value.lstrip()[:1] not in _OPENING:
        return value
    return _canonical_text(value) if len(value) >= _LONG else _remembered(value)


def _canonical_text(text: str) -> str:
    parsed = parse_json(text)
    return text if parsed is None else canonical(parsed)


_LONG = 10_000
_remembered = lru_cache(maxsize=1024)(_canonical_text)
"""The canonical JSON of shorter texts: of a call that is read, it is asked again by coverage."""


_OPENING = frozenset("{[")


def parse_json(text: str) -> Any:
    """Return the value of a JSON object or list in a text; None if it is something else."""
    if text[:1] not in _OPENING and text.lstrip()[:1] not in _OPENING:
        return None
    try:
        return parse_json_text(text)
    except ValueError:
        return None


def as_number(value: object, what: str) -> float | None:
    """Return a number; None for null."""
    if value is None:
        return None
    if isinstance(value, int | float) and _is_finite(value):
        return float(value)
    raise RecordError(f"{what} must be a finite number: got {short(value)}")


def parse_number(text: str) -> float | str:
    """Return the number that a text is; the text if it is none."""
    try:
        return float(text)
    except ValueError:
        return text


def as_integer(value: object) -> int | None:
    """Return a whole number; None for everything else."""
    return value if isinstance(value, int) else None


def numbers_of(value: object) -> dict[str, float]:
    """Return the finite numbers of a JSON object by name; none of any other value."""
    fields = fields_of(value)
    return {
        name: float(number)
        for name, number in fields.items()
        if isinstance(number, _NUMBER) and _is_finite(number)
    }


_NUMBER = (int, float)


def _is_finite(number: float) -> bool:
    """Return whether a float can hold a number: JSON has integers of any length."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def as_text(value: object) -> str | None:
    """Return a name as text, whether the log has it as text or as a number; None for null."""
    return None if value is None else value if isinstance(value, str) else canonical(value)


_UNIQUE = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|[0-9a-f]{32}")


def is_unique(name: str) -> bool:
    """Return whether a name is one that no other log has: a UUID, or an id of a trace."""
    return _UNIQUE.fullmatch(name) is not None


def joined(*names: object, by: str = ":") -> str:
    """Return names as one text, without those that are null or empty."""
    return by.join(text for name in names if (text := as_text(name)))


def version_of(first: object, last: object) -> str | None:
    """Return the weights of a rollout: `3`, or `3-4` where they were replaced while it was played.

    Args:
        first: Their version at its start; null if the log does not say.
        last: Their version at its end; the same.
    """
    names = [text for version in (first, last) if (text := as_text(version)) is not None]
    return "-".join(dict.fromkeys(names)) or None


def first_of(mapping: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the value of the first name that is there and not null; None if there is none."""
    for name in names:
        value = mapping.get(name)
        if value is not None:
            return value
    return None


def field_at(value: object, path: str) -> Any:
    """Return a part of a JSON value by a path such as `info.task.0.name`; None if not there."""
    whole = cast("Any", value)
    is_object = isinstance(whole, dict | Mapping)
    if is_object and path in whole:
        return whole[path]
    if is_object and "." not in path:
        return None
    for name in path.split("."):
        if isinstance(whole, Mapping):
            whole = cast("Mapping[str, Any]", whole).get(name)
        elif isinstance(whole, list) and name.isdecimal() and int(name) < len(whole):
            whole = cast("list[Any]", whole)[int(name)]
        else:
            return None
    return whole


def first_at(value: object, paths: Iterable[str]) -> Any:
    """Return the first part of a JSON value that is there and not null; None if there is none."""
    return next((part for path in paths if (part := field_at(value, path)) is not None), None)


VERDICTS: Mapping[str, bool] = {
    **dict.fromkeys(("true", "yes", "pass", "passed", "success", "resolved"), True),
    **dict.fromkeys(("false", "no", "fail", "failed", "failure", "unresolved"), False),
}
"""Words that say whether a task was accomplished, in lower case."""


def as_verdict(value: object) -> bool | None:
    """Return whether a value says yes: true, 1, or a word for it; None if it says neither."""
    if isinstance(value, str):
        return VERDICTS.get(value.strip().lower())
    return bool(value) if isinstance(value, int | float) and value in (0, 1) else None


def no_verdict(name: str, value: object) -> dict[str, int]:
    """Return what is left out of a rollout where a field for its success does not tell it."""
    is_unclear = value is not None and as_verdict(value) is None
    return {f"`{name}` that is neither true nor false": 1} if is_unclear else {}


_LIMITS = ("max", "timeout", "length", "truncat", "limit", "context")


def is_limit(reason: object) -> bool:
    """Return whether the reason of an end names a limit, such as `max_turns` or `timeout`."""
    return isinstance(reason, str) and any(word in reason.lower() for word in _LIMITS)


def short(value: object) -> str:
    """Return a value for a message."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
