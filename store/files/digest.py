"""A digest inside each Parquet file, which detects damage before any of it is parsed.

The last key in the metadata of the footer is `graphcredit.digest`. Its value has a fixed width:

    graphcredit-sha256:<pages>:<footer>:<size>:<length>

    pages    SHA-256 of all bytes before the footer, in hexadecimal digits
    footer   the same of all bytes from the footer on, with 64 zeros in this offset
    size     bytes of the file, in 19 decimal digits
    length   bytes of the footer, in 10 decimal digits, as the last 8 bytes of the file have it

The footer holds the digest of the pages, so the footer can be verified alone: that reads a few
kilobytes. A program that rewrites the rows and copies the metadata makes a file of another size and
another footer length. The value does not apply to such a file, which counts as one without a
digest.
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
"""Value with which a file is first written; `seal` replaces it."""

_VALUE = re.compile(rb"graphcredit-sha256:([0-9a-f]{64}):([0-9a-f]{64}):([0-9]{19}):([0-9]{10})")
_KEY = b"\x18%c%s\x18" % (len(DIGEST_KEY), DIGEST_KEY)
"""The key as encoded in the footer. The length of the value follows, in 2 bytes."""

_TRAILER = 8
"""Bytes after the footer: its length, and the magic number `PAR1`."""

TAIL = 1 << 16
"""Bytes at the end of a file to search for the value. It is followed only by the name of the
library that wrote the file and by the column orders."""

_CHUNK = 1 << 20


def seal(path: Path) -> None:
    """Put the digest into a file whose last metadata value is `PLACEHOLDER`.

    Args:
        path: A complete Parquet file that nobody reads yet.
    """
    with path.open("r+b") as file:
        tail, size, length = _ending(file)
        offset = _value_offset(tail)
        assert offset is not None, "the file was written with the placeholder"
        start, value_at = size - _TRAILER - length, size - len(tail) + offset
        pages = _hash(file, 0, start)
        _put(file, value_at, _FORM % (pages, _ZEROS, size, length))
        _put(file, value_at, _FORM % (pages, _hash(file, start, size), size, length))


def verify(path: Path, *, whole: bool = True) -> bool:
    """Verify the digest of a file, and return whether the file has one.

    Args:
        path: A Parquet file, whoever wrote it.
        whole: Verify the whole file, not only the footer.

    Raises:
        DamagedFileError: The digest does not match, or the file does not end as Parquet does. The
            message says what was found.
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        tail, size, length = _ending(file)
        if not tail.endswith(b"PAR1"):
            raise DamagedFileError("it does not end as Parquet does")
        offset = _value_offset(tail)
        if offset is None:
            return False
        value = _VALUE.match(tail, offset)
        if value is None:
            raise DamagedFileError("its digest cannot be read")
        pages, footer, *numbers = value.groups()
        recorded_size, recorded_length = map(int, numbers)
        if recorded_size != size and recorded_length != length:
            return False
        start, footer_at = size - _TRAILER - length, size - len(tail) + offset + _FOOTER_AT
        is_as_long = (recorded_size, recorded_length) == (size, length) and 0 <= start < footer_at
        if not is_as_long or _hash(file, start, size, zeros_at=footer_at) != footer:
            raise DamagedFileError("its footer has another digest than it was written with")
        if whole and _hash(file, 0, start) != pages:
            raise DamagedFileError("its pages have another digest than they were written with")
    return True


def _ending(file: BinaryIO) -> tuple[bytes, int, int]:
    """Return the last bytes of a file, its size, and the footer length that it states."""
    size = file.seek(0, 2)
    file.seek(max(0, size - TAIL))
    tail = file.read()
    return tail, size, int.from_bytes(tail[-_TRAILER:-4], "little")


def _value_offset(tail: bytes) -> int | None:
    """Return the offset of the value in the last bytes of a file, or None if there is none.

    It is found by its key, or else by its own form: damage to the one leaves the other.
    """
    key = tail.rfind(_KEY)
    if key >= 0:
        return key + len(_KEY) + 2
    values = [match.start() for match in _VALUE.finditer(tail)]
    return values[-1] if values else None


def _put(file: BinaryIO, offset: int, value: bytes) -> None:
    file.seek(offset)
    file.write(value)
    file.flush()


def _hash(file: BinaryIO, start: int, stop: int, *, zeros_at: int | None = None) -> bytes:
    """Return the hash of a part of a file, as if the hash at `zeros_at` were all zeros."""
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
