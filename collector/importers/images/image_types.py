"""The type of an image by its content, and whether the file is whole; no pixel is decoded."""

import struct
import zlib
from collections.abc import Callable

ELSEWHERE = "image at an address that is not fetched"
MISSING = "image that is missing"
NOT_FOLLOWED = "image in a file that may not be read"
BROKEN = "image that is damaged or too large"
UNKNOWN = "image that is no PNG, JPEG, GIF or WebP"

MOST_BYTES = 32 << 20
"""Bytes of an image file."""

MOST_PIXELS = 89_478_485
"""Pixels of an image, by its header: beyond, Pillow warns of a decompression bomb."""

_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG_SIZES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
"""Markers of JPEG's segments that have the size of the image."""
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD8)})
"""Markers without a segment."""


class ImageError(Exception):
    """An image cannot be kept."""

    def __init__(self, reason: str, detail: str) -> None:
        """Say why.

        Args:
            reason: One of those above, by which images are counted.
            detail: What must hold, and what was found.
        """
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class _TruncatedError(Exception):
    pass


def image_type(content: bytes) -> str:
    """Return the suffix for an image: png, jpg, gif or webp."""
    if len(content) > MOST_BYTES:
        raise ImageError(BROKEN, f"an image must have at most {MOST_BYTES >> 20} MiB")
    types = ((name, size) for sign, name, size in _TYPES if content.startswith(sign))
    name, size_of = next(types, ("", _png))
    if not name or (name == "webp" and content[8:12] != b"WEBP"):
        raise ImageError(
            UNKNOWN, f"an image must be a PNG, JPEG, GIF or WebP: it begins with {content[:8]!r}"
        )
    try:
        width, height = size_of(content)
    except (IndexError, struct.error, _TruncatedError):
        raise ImageError(BROKEN, f"the {name} file is cut off or damaged") from None
    if not 0 < width * height <= MOST_PIXELS:
        raise ImageError(
            BROKEN,
            f"an image must have 1 to {MOST_PIXELS:,} pixels: its header says {width} x {height}",
        )
    return name


def _png(content: bytes) -> tuple[int, int]:
    """Return the size of a PNG, whose chunks have checksums."""
    at, size, view = len(_PNG), (0, 0), memoryview(content)
    while True:
        length, kind = struct.unpack_from(">I4s", content, at)
        (checksum,) = struct.unpack_from(">I", content, at + 8 + length)
        if zlib.crc32(view[at + 4 : at + 8 + length]) != checksum:
            raise _TruncatedError
        if at == len(_PNG):
            if kind != b"IHDR":
                raise _TruncatedError
            size = struct.unpack_from(">II", content, at + 8)
        if kind == b"IEND":
            return size
        at += 12 + length


def _jpeg(content: bytes) -> tuple[int, int]:
    """Return the size of a JPEG; an end must follow the first scan."""
    at, size = 2, (0, 0)
    while True:
        if content[at] != 0xFF:
            raise _TruncatedError
        marker = content[at + 1]
        if marker == 0xFF:
            at += 1
        elif marker in _JPEG_BARE:
            at += 2
        elif marker == 0xDA:
            if content.find(b"\xff\xd9", at) < 0:
                raise _TruncatedError
            return size
        else:
            if marker in _JPEG_SIZES:
                height, width = struct.unpack_from(">HH", content, at + 5)
                size = width, height
            at += 2 + struct.unpack_from(">H", content, at + 2)[0]


def _gif(content: bytes) -> tuple[int, int]:
    """Return the size of the largest frame of a GIF, or of its screen if that is larger."""
    size: tuple[int, int] = struct.unpack_from("<HH", content, 6)
    at = 13 + _gif_colors(content[10])
    while content[at] != 0x3B:
        if content[at] == 0x2C:
            frame = struct.unpack_from("<HH", content, at + 5)
            size = max(size, frame, key=lambda each: each[0] * each[1])
            at = _gif_blocks(content, at + 11 + _gif_colors(content[at + 9]))
        elif content[at] == 0x21:
            at = _gif_blocks(content, at + 2)
        else:
            raise _TruncatedError
    return size


def _gif_colors(flags: int) -> int:
    """Return the bytes of a table of colours, which may not be there."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _gif_blocks(content: bytes, at: int) -> int:
    """Return where the blocks that start at a place end."""
    while content[at]:
        at += 1 + content[at]
    return at + 1


def _webp(content: bytes) -> tuple[int, int]:
    """Return the size of a WebP: lossy, lossless, or a canvas."""
    (length,) = struct.unpack_from("<I", content, 4)
    if len(content) < 8 + length:
        raise _TruncatedError
    match content[12:16]:
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", content, 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", content, 21)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            low = struct.unpack_from("<HBHB", content, 24)
            return (low[0] | low[1] << 16) + 1, (low[2] | low[3] << 16) + 1
        case _:
            raise _TruncatedError


_TYPES: tuple[tuple[bytes, str, Callable[[bytes], tuple[int, int]]], ...] = (
    (_PNG, "png", _png),
    (b"\xff\xd8\xff", "jpg", _jpeg),
    (b"GIF87a", "gif", _gif),
    (b"GIF89a", "gif", _gif),
    (b"RIFF", "webp", _webp),
)
"""How the files of a type begin, its suffix, and what reads its size."""
