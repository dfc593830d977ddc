"""Read JSONL files, plain or compressed, in blocks of whole lines."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from graphcredit.collector.importers.logs.files import (
    DAMAGE,
    Record,
    RowError,
    broken,
    decompressed,
    parsed,
)

BLOCK_BYTES = 1 << 20
"""Bytes of lines, after decompression, that are read at a time."""

_READ_BYTES = 1 << 16

BEFORE_JSON = b"\xef\xbb\xbf \t\r\n"
"""Bytes that may stand before a JSON text."""


def is_indented(path: Path) -> bool:
    """Return whether the first line of a file only opens an object or a list."""
    try:
        with path.open("rb") as raw:
            text = decompressed(raw, path).read(_READ_BYTES)
    except DAMAGE:
        return False
    first, _, rest = text.lstrip(BEFORE_JSON).partition(b"\n")
    # A first line that was cut off opens an object too, and whole records follow it.
    return first.strip() == b"[" or (first.strip() == b"{" and not is_lines(rest))


def lines_of(path: Path) -> Iterator[Record]:
    """Yield the records of a file with a record a line."""
    for block in _blocks(path):
        if block.first_line == 1 and block.lines.startswith(_UTF_16):
            yield Record(path=path, place="", value=RowError(_NOT_UTF_8), share=1.0)
            return
        yield from records_of_block(path, block)


_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_NOT_UTF_8 = (
    "it must be UTF-8: its first bytes are those of UTF-16, which PowerShell writes. "
    "`iconv -f UTF-16 -t UTF-8 FILE > NEW.jsonl` converts it"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class LineBlock:
    """Some whole lines of a file."""

    lines: bytes
    first_line: int
    """Number of the first one in the file, from 1."""
    share: float
    """How much of the file has been read with them, 0 to 1."""
    damage: str = ""
    """Why the file cannot be read any further."""


def _blocks(path: Path) -> Iterator[LineBlock]:
    """Yield the lines of a file, in blocks of about `BLOCK_BYTES`."""
    size = max(path.stat().st_size, 1)
    first, parts, length = 1, list[bytes](), 0
    with path.open("rb") as raw:
        stream, damage = decompressed(raw, path), ""
        while not damage:
            try:
                data = stream.read(_READ_BYTES)
            except DAMAGE as error:
                data, damage = b"", " ".join(str(error).split())[:200]
            parts.append(data)
            length += len(data)
            if data and (length < BLOCK_BYTES or b"\n" not in data):
                continue
            whole = b"".join(parts)
            end = len(whole) if not (data or damage) else whole.rfind(b"\n") + 1
            lines, rest = whole[:end], whole[end:]
            share = min(raw.tell() / size, 1.0)
            yield LineBlock(lines=lines, first_line=first, share=share, damage=damage)
            if not data:
                return
            first += lines.count(b"\n")
            parts, length = [rest], len(rest)


def records_of_block(path: Path, block: LineBlock) -> Iterator[Record]:
    """Yield the records of some lines of a file; empty lines are none."""
    number = block.first_line
    for number, line in enumerate(block.lines.split(b"\n"), start=block.first_line):
        if line and not line.isspace():
            value = parsed(line)
            yield Record(path=path, place=f"line {number}", value=value, share=block.share)
    if block.damage:
        yield broken(path, f"line {number}", block.damage)


def is_lines(text: bytes) -> bool:
    """Return whether a text is JSONL, whatever its name: its first line is an object."""
    return isinstance(parsed(text.lstrip(BEFORE_JSON).partition(b"\n")[0]), dict)
