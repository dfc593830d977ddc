"""Parse JSON and TOML that came with a log or a store: into a value, or a ValueError."""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, cast

MAX_DEPTH = 200
"""Most lists and objects in one another: deeper ones end whoever walks them by recursion."""

_LONG_KEY = re.compile(
    rf"(?:^|[{{,])[\s\[]*[^\s=#\"']+?(?:\s*\.\s*[\w\"'-]+){{{MAX_DEPTH}}}", re.MULTILINE
)


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: It is no JSON, is nested deeper than `MAX_DEPTH`, or has a number of thousands
            of digits.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise _too_deep() from None
    refuse_deep(value)
    return value


def parse_toml(text: str) -> dict[str, Any]:
    """Return the values of a TOML text.

    Raises:
        ValueError: As `parse_json`; also for a key of more than `MAX_DEPTH` parts.
    """
    if _LONG_KEY.search(text):
        raise _too_deep()
    try:
        value = tomllib.loads(text)
    except RecursionError:
        raise _too_deep() from None
    refuse_deep(value)
    return value


def refuse_deep(value: object) -> None:
    """Raise ValueError for lists and objects that are nested deeper than `MAX_DEPTH`."""
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        level = [
            item for each in level for item in _items(each) if isinstance(item, (Mapping, list))
        ]
        if not level:
            return
    raise _too_deep()


def _items(value: object) -> Iterable[object]:
    match value:
        case Mapping():
            return cast("Mapping[object, object]", value).values()
        case list():
            return cast("list[object]", value)
        case _:
            return ()


def _too_deep() -> ValueError:
    return ValueError(f"lists and objects may be nested at most {MAX_DEPTH} deep")
