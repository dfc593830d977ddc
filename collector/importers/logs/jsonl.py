"""Read JSONL files, plain or compressed, in blocks of whole lines."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from graphcredit.collector.importers.logs.files import (
    LINES,
    MAX_RECORD_BYTES,
    SUFFIXES,
    Record,
    RowError,
    broken,
    decompressed,
    is_mistake,
    kind_of,
    parsed,
    too_long,
)

BLOCK_BYTES = 1 << 20
"""Bytes of lines, after decompression, that are read at a time."""

_READ_BYTES = 1 << 16
_SHOWN_CHARACTERS = 60

BEFORE_JSON = b"\xef\xbb\xbf \t\r\n"
"""Bytes that may stand before a JSON text."""


def is_indented(path: Path) -> bool:
    """Return whether the first line of a file only opens an object or a list."""
    try:
        with path.open("rb") as raw:
            text = decompressed(raw, path).read(_READ_BYTES)
    except Exception as error:
        if is_mistake(error):
            raise
        return False
    first, _, rest = text.lstrip(BEFORE_JSON).partition(b"\n")
    # A first line that was cut off opens an object too, and whole records follow it.
    return first.strip() == b"[" or (first.strip() == b"{" and not is_lines(rest))


def text_of_lines(path: Path) -> str:
    """Return the beginning of a file of lines whose first one is text and no JSON; else nothing."""
    if not path.is_file() or (kind_of(path) in SUFFIXES and kind_of(path) not in LINES):
        return ""
    try:
        with path.open("rb") as raw:
            first = _read(decompressed(raw, path))[0].lstrip(BEFORE_JSON).split(b"\n")[0]
    except OSError:
        return ""
    text = first.decode(errors="replace").strip()
    is_text = text.isprintable() and not text.startswith(("{", "[{", '["'))
    return text[:_SHOWN_CHARACTERS] if is_text and isinstance(parsed(first), RowError) else ""


def lines_of(path: Path, limit: int = MAX_RECORD_BYTES) -> Iterator[Record]:
    """Yield the records of a file with a record a line, each of at most some bytes."""
    for block in _blocks(path, limit):
        if block.first_line == 1 and block.lines.startswith(UTF_16):
            yield Record(path=path, place="", value=RowError(NOT_UTF_8), share=1.0)
            return
        yield from records_of_block(path, block, limit)


UTF_16 = (b"\xff\xfe", b"\xfe\xff")
NOT_UTF_8 = (
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
    is_too_long: bool = False
    """Whether it stands for one line that is longer than the limit, and was not kept."""


def _blocks(path: Path, limit: int) -> Iterator[LineBlock]:
    """Yield the lines of a file, in blocks of about `BLOCK_BYTES`; a line over the limit alone."""
    size = max(path.stat().st_size, 1)
    first, parts, length = 1, list[bytes](), 0
    with path.open("rb") as raw:
        stream, damage = decompressed(raw, path), ""
        while not damage:
            data, damage = _read(stream)
            parts.append(data)
            length += len(data)
            has_end = not data or b"\n" in data
            if data and length <= limit and (length < BLOCK_BYTES or not has_end):
                continue
            whole = b"".join(parts)
            end = len(whole) if not (data or damage) else whole.rfind(b"\n") + 1
            lines, rest = whole[:end], whole[end:]
            share = min(raw.tell() / size, 1.0)
            yield LineBlock(lines=lines, first_line=first, share=share, damage=damage)
            if not data:
                return
            first += lines.count(b"\n")
            if len(rest) > limit:
                yield LineBlock(lines=b"", first_line=first, share=share, is_too_long=True)
                first += 1
                rest, damage = _behind_line(stream)
                if damage:
                    yield LineBlock(lines=b"", first_line=first, share=1.0, damage=damage)
            parts, length = [rest], len(rest)


def _read(stream: IO[bytes]) -> tuple[bytes, str]:
    """Return the next bytes of a file, none at its end; and what is wrong if it is damaged."""
    try:
        return stream.read(_READ_BYTES), ""
    except Exception as error:
        if is_mistake(error):
            raise
        return b"", " ".join(str(error).split())[:200] or repr(error)


def _behind_line(stream: IO[bytes]) -> tuple[bytes, str]:
    """Read on to the end of a line, and return what `_read` gave behind it."""
    data, damage = _read(stream)
    while data and b"\n" not in data:
        data, damage = _read(stream)
    return data.partition(b"\n")[2], damage


def records_of_block(path: Path, block: LineBlock, limit: int) -> Iterator[Record]:
    """Yield the records of some lines of a file; empty lines are none."""
    number, share = block.first_line, block.share
    if block.is_too_long:
        yield Record(path=path, place=f"line {number}", value=too_long(limit), share=share)
        return
    for number, line in enumerate(block.lines.split(b"\n"), start=block.first_line):
        if line and not line.isspace():
            value = parsed(line) if len(line) <= limit else too_long(limit)
            yield Record(path=path, place=f"line {number}", value=value, share=share)
    if block.damage:
        yield broken(path, f"line {number}", block.damage)


def is_lines(text: bytes) -> bool:
    """Return whether a text is JSONL, whatever its name: its first line is an object."""
    return isinstance(parsed(text.lstrip(BEFORE_JSON).partition(b"\n")[0]), dict)
