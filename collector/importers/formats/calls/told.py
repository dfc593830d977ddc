"""What each row of a conversation tells anew: it may tell all again that was told before."""

from collections.abc import Iterable, Iterator
from typing import Any, cast


def told_once(rows: Iterable[Any]) -> Iterator[Any]:
    """Yield rows without the items that the row before has at the beginning of its lists."""
    before: Any = None
    for row in rows:
        yield _new_in(row, before)
        before = row


def _new_in(value: Any, before: Any) -> Any:
    if isinstance(value, dict) and isinstance(before, dict):
        known = cast("dict[str, Any]", before)
        pairs = cast("dict[str, Any]", value).items()
        return {name: _new_in(item, known.get(name)) for name, item in pairs}
    if isinstance(value, list) and isinstance(before, list):
        items, first = cast("list[Any]", value), cast("list[Any]", before)
        return items[len(first) :] if items[: len(first)] == first else items
    return value
