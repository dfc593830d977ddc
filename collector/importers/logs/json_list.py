"""Read a long JSON text value by value, so that one value and a few megabytes are in memory."""

import codecs
import re
from collections.abc import Callable, Iterator
from json import JSONDecodeError, JSONDecoder
from typing import Any

from graphcredit.collector.importers.logs.files import MAX_RECORD_BYTES, too_long
from graphcredit.collector.importers.logs.json_text import refuse_repeated_keys
from graphcredit.store.files.parse import in_our_words, refuse_deep

_CHUNK = 4 << 20
_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"[-+.eE0-9]+")
_decode = JSONDecoder().raw_decode


def list_items(read: Callable[[int], bytes], limit: int = MAX_RECORD_BYTES) -> Iterator[Any]:
    """Yield the items of a JSON list.

    Args:
        read: Returns at most so many bytes of the text, none at its end.
        limit: Most characters of one item.

    Raises:
        ValueError: It is no JSON from here on, or the item is too long.
    """
    text = _Text(read, limit)
    text.take("[")
    if text.next_character() == "]":
        return
    yield text.take_value()
    while text.next_character() == ",":
        text.take(",")
        yield text.take_value()
    text.take("]")


def values(read: Callable[[int], bytes], limit: int = MAX_RECORD_BYTES) -> Iterator[Any]:
    """Yield JSON values that follow one another, with white space or nothing between.

    Args:
        read: As for `list_items`.
        limit: Most characters of one value.

    Raises:
        ValueError: As `list_items`.
    """
    text = _Text(read, limit)
    while text.next_character():
        yield text.take_value()


class _Text:
    """A JSON text, of which the part that is read and not taken is in memory."""

    def __init__(self, read: Callable[[int], bytes], limit: int) -> None:
        self._read = read
        self._limit = limit
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text, self._at, self._is_whole = "", 0, False
        self._line, self._column = 1, 1

    def next_character(self) -> str:
        """Return the next one that is no white space; empty at the end."""
        while True:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text) or self._is_whole:
                return self._text[self._at : self._at + 1]
            self._read_on()

    def take(self, character: str) -> None:
        """Go behind a character."""
        following = self.next_character()
        if following != character:
            raise self._error(f"expected {character!r}, found {following!r}", self._at)
        self._at += 1

    def take_value(self) -> Any:
        """Return the next value, and go behind it."""
        self.next_character()
        while True:
            try:
                value, end = _decode(self._text, self._at)
            except JSONDecodeError as error:
                if self._is_whole or not self._is_cut(error):
                    raise self._error(error.msg, error.pos) from None
            except (RecursionError, ValueError) as error:
                raise in_our_words(error) from None
            else:
                # `1.` at the end of what is in memory may be a part of `1.5`.
                behind = self._text[end : end + 3]
                if self._is_whole or len(behind) == 3 or _NUMBER.sub("", behind):
                    text, self._at = self._text[self._at : end], end
                    refuse_deep(value)
                    refuse_repeated_keys(text.encode("utf-8", "surrogatepass"), value)
                    return value
            self._read_on()

    def _is_cut(self, error: JSONDecodeError) -> bool:
        """Return whether the end of what is in memory may be why a value cannot be read."""
        is_near_end = error.pos > len(self._text) - 16
        return is_near_end or error.msg.startswith("Unterminated string")

    def _error(self, message: str, at: int) -> ValueError:
        line, column = self._place(at)
        return ValueError(f"{message}: line {line} column {column}")

    def _place(self, at: int) -> tuple[int, int]:
        """Return line and column of a character in memory, each from 1."""
        _, newline, line = self._text[:at].rpartition("\n")
        column = len(line) + (1 if newline else self._column)
        return self._line + self._text.count("\n", 0, at), column

    def _read_on(self) -> None:
        """Read at least as much as is left, so that a long value is begun a few times only."""
        left = self._text[self._at :]
        if len(left) > self._limit:
            raise too_long(self._limit)
        self._line, self._column = self._place(self._at)
        data = self._read(max(_CHUNK, len(left)))
        self._is_whole = not data
        self._text = left + self._decoder.decode(data, final=not data)
        self._at = 0
