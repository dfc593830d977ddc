"""A Parquet file's digest of itself, by which damage is found before anything is read.

The last key in the metadata of the footer is `graphcredit.digest`. Its value has a fixed width:

    graphcredit-sha256:<pages>:<footer>:<size>:<length>

    pages    SHA-256 of all bytes before the footer, in hexadecimal digits
    footer   the same of all bytes from the footer on, with 64 zeros in this place
    size     bytes of the file, in 19 decimal digits
    length   bytes of the footer, in 10 decimal digits, as the last 8 bytes of the file have it

The footer vouches for the pages, so it can be verified alone: that reads a few kilobytes. A program
that writes the rows anew, and copies the metadata, makes a file of another size and another footer.
The value says nothing of such a file, which is then as one without a digest.
"""

import hashlib
import re
from pathlib import Path
from typing import BinaryIO

from graphcredit.store.errors import DamagedFileError

DIGEST_KEY = b"graphcredit.digest"

_FORM = b"graphcredit-sha256:%s:%s:%019d:%010d"
_FOOTER_AT = len(b"graphcredit-sha256:") + 65
_ZEROS = b"0" * 64
PLACEHOLDER = _FORM % (_ZEROS, _ZEROS, 0, 0)
"""What a file is written with; `seal` replaces it."""

_VALUE = re.compile(rb"graphcredit-sha256:([0-9a-f]{64}):([0-9a-f]{64}):([0-9]{19}):([0-9]{10})")
_KEY = b"\x18%c%s\x18" % (len(DIGEST_KEY), DIGEST_KEY)
"""The key as a footer has it; the length of the value stands between both, in 2 bytes."""

_TRAILER = 8
"""Bytes after the footer: its length, and the format's mark."""

_TAIL = 1 << 16
"""Bytes at the end of a file that have the value: after it come the name of the library that wrote
the file, and the orders of the columns."""

_CHUNK = 1 << 20


def seal(path: Path) -> None:
    """Put the digest into a file that has `PLACEHOLDER` as the last of its metadata.

    Args:
        path: A whole Parquet file that nobody reads yet.
    """
    with path.open("r+b") as file:
        tail, size, length = _ending(file)
        place = _place(tail)
        assert place is not None, "the file was written with the placeholder"
        start, value_at = size - _TRAILER - length, size - len(tail) + place
        pages = _hash(file, 0, start)
        _put(file, value_at, _FORM % (pages, _ZEROS, size, length))
        _put(file, value_at, _FORM % (pages, _hash(file, start, size), size, length))


def verify(path: Path, *, whole: bool = True) -> bool:
    """Return whether a file has a digest of itself; if it has, the file agrees with it.

    Args:
        path: A Parquet file, whoever wrote it.
        whole: Verify all of it, not the footer alone.

    Raises:
        DamagedFileError: It does not agree, or does not end as Parquet does; the message is what
            was found.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        tail, size, length = _ending(file)
        if not tail.endswith(b"PAR1"):
            raise DamagedFileError("it does not end as Parquet does")
        place = _place(tail)
        if place is None:
            return False
        value = _VALUE.match(tail, place)
        if value is None:
            raise DamagedFileError("its digest cannot be read")
        pages, footer, *numbers = value.groups()
        recorded_size, recorded_length = map(int, numbers)
        if recorded_size != size and recorded_length != length:
            return False
        start, footer_at = size - _TRAILER - length, size - len(tail) + place + _FOOTER_AT
        is_as_long = (recorded_size, recorded_length) == (size, length) and 0 <= start < footer_at
        if not is_as_long or _hash(file, start, size, zeros_at=footer_at) != footer:
            raise DamagedFileError("its footer has another digest than it was written with")
        if whole and _hash(file, 0, start) != pages:
            raise DamagedFileError("its pages have another digest than they were written with")
    return True


def _ending(file: BinaryIO) -> tuple[bytes, int, int]:
    """Return the last bytes of a file, its size, and what it has as the length of its footer."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _TAIL))
    tail = file.read()
    return tail, size, int.from_bytes(tail[-_TRAILER:-4], "little")


def _place(tail: bytes) -> int | None:
    """Return where in the last bytes of a file the value begins, or None if there is none.

    It is found by its key, or by itself: damage in one place hides only one of them.
    """
    key = tail.rfind(_KEY)
    if key >= 0:
        return key + len(_KEY) + 2
    values = [match.start() for match in _VALUE.finditer(tail)]
    return values[-1] if values else None


def _put(file: BinaryIO, place: int, value: bytes) -> None:
    file.seek(place)
    file.write(value)
    file.flush()


def _hash(file: BinaryIO, start: int, stop: int, *, zeros_at: int | None = None) -> bytes:
    """Return the hash of a part of a file, with zeros in place of one hash in it."""
    content = hashlib.sha256()
    file.seek(start)
    if zeros_at is not None:
        content.update(file.read(zeros_at - start))
        content.update(_ZEROS)
        start = file.seek(zeros_at + len(_ZEROS))
    while start < stop and (chunk := file.read(min(_CHUNK, stop - start))):
        content.update(chunk)
        start += len(chunk)
    return content.hexdigest().encode()
