"""Small image files, made byte by byte, and messages that show them."""

import base64
import struct
import zlib
from typing import Any


def png(shade: int = 0, *, width: int = 1, height: int = 1) -> bytes:
    """Return a grey PNG; the pixels are those of one row, whatever the header says."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        length, checksum = struct.pack(">I", len(data)), struct.pack(">I", zlib.crc32(kind + data))
        return length + kind + data + checksum

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress(bytes([0, shade]))
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def gif(*, width: int = 1, height: int = 1) -> bytes:
    """Return a GIF whose screen is one pixel, with a frame of a size."""
    frame = b"," + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\x02\x02D\x01\x00"
    return b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0x80, 0, 0) + bytes(6) + frame + b";"


def jpeg(*, width: int = 1, height: int = 1, thumbnail: bytes = b"") -> bytes:
    """Return the segments of a JPEG; what is in its scan is no picture."""
    exif = b"\xff\xe1" + struct.pack(">H", 2 + len(thumbnail)) + thumbnail
    size = b"\xff\xc0" + struct.pack(">HBHHB", 8, 8, height, width, 0)
    return b"\xff\xd8" + exif + size + b"\xff\xda\x00\x02scan\xff\xd9"


def webp(*, width: int = 1, height: int = 1) -> bytes:
    """Return the head of a lossless WebP and some bytes."""
    bits = struct.pack("<I", (width - 1) | (height - 1) << 14)
    chunk = b"VP8L" + struct.pack("<I", 6) + b"\x2f" + bits + b"\x00"
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk


def base64_of(content: bytes) -> str:
    return base64.b64encode(content).decode()


def data_url(content: bytes) -> str:
    return f"data:image/png;base64,{base64_of(content)}"


def image_url(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def shows(*parts: Any, role: str = "user") -> dict[str, Any]:
    """Return a message of parts; a text is a part of text."""
    made = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
    return {"role": role, "content": made}
