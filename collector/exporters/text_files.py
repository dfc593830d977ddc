"""Read and write text files by lines; a suffix `.gz` or `.zst` says how they are compressed."""

import gzip
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, cast

import pyarrow as pa

from graphcredit.collector.importers.logs.files import decompressed


@contextmanager
def reading(path: Path) -> Generator[tuple[IO[bytes], IO[bytes]]]:
    """Open a file; yield its content, and the file itself, whose position tells the progress."""
    with path.open("rb") as raw, decompressed(raw, path) as content:
        yield content, raw


@contextmanager
def writing(path: Path, name: str) -> Generator[IO[bytes]]:
    """Open a new file.

    Args:
        path: Where it is written; it may be a temporary path.
        name: Its final name, whose suffix says how it is compressed.
    """
    with ExitStack() as opened:
        raw = opened.enter_context(path.open("wb"))
        match Path(name).suffix.lower():
            case ".gz":
                # Without a time, equal contents are equal files.
                packed = gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)
                content = opened.enter_context(packed)
            case ".zst":
                stream = pa.CompressedOutputStream(pa.PythonFile(raw, mode="w"), "zstd")
                content = opened.enter_context(stream)
            case _:
                content = raw
        yield cast("IO[bytes]", content)
