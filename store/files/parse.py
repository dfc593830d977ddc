"""Parse JSON and TOML that came with a log or a store: into a value, or a ValueError."""

import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
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
    except (RecursionError, ValueError) as error:
        raise in_our_words(error) from None
    if isinstance(text, bytes) or text.count("{") + text.count("[") > MAX_DEPTH:
        refuse_deep(value)
    return value


def parse_object(text: str | None) -> dict[str, Any]:
    """Return the object of a JSON text; empty where there is none that can be parsed."""
    try:
        value = parse_json(text or "null")
    except ValueError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def json_in(text: str, opening: re.Pattern[str]) -> Iterator[tuple[int, int, Any]]:
    """Yield where JSON objects and lists begin and end in a text, and their values.

    What cannot be parsed is plain text; so is all that follows what is nested deeper than
    `MAX_DEPTH`.

    Args:
        text: Any.
        opening: What an object or a list that is looked for begins with.
    """
    decoder, position = json.JSONDecoder(), 0
    while (match := opening.search(text, position)) is not None:
        begin, position = match.span()
        try:
            value, end = decoder.raw_decode(text, begin)
        except RecursionError:
            return
        except ValueError:
            continue
        if is_deep(value):
            return
        yield begin, end, value
        position = end


def parse_toml(text: str) -> dict[str, Any]:
    """Return the values of a TOML text.

    Raises:
        ValueError: As `parse_json`; also for a key of more than `MAX_DEPTH` parts.
    """
    if _LONG_KEY.search(text):
        raise _too_deep()
    try:
        value = tomllib.loads(text)
    except (RecursionError, ValueError) as error:
        raise in_our_words(error) from None
    refuse_deep(value)
    return value


def in_our_words(error: Exception) -> Exception:
    """Return what is to be raised for an error of Python's reader of JSON or TOML."""
    if isinstance(error, RecursionError):
        return _too_deep()
    if "integer string conversion" in str(error):  # its own words tell how to change Python
        return ValueError(f"a whole number may have {sys.get_int_max_str_digits():,} digits")
    return error


def refuse_deep(value: object) -> None:
    """Raise ValueError for lists and objects that are nested deeper than `MAX_DEPTH`."""
    if is_deep(value):
        raise _too_deep()


def is_deep(value: object) -> bool:
    """Return whether lists and objects are nested deeper than `MAX_DEPTH`."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [item for each in level for item in _items(each) if type(item) in _NESTED]
        if not level:
            return False
    return True


_NESTED = frozenset({dict, list})


def _items(value: object) -> Iterable[object]:
    if type(value) is dict:
        return cast("dict[object, object]", value).values()
    return cast("list[object]", value) if type(value) is list else ()


def _too_deep() -> ValueError:
    return ValueError(f"lists and objects may be nested at most {MAX_DEPTH} deep")
