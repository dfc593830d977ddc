"""Work for the pool's tests: a module of its own, since workers import it."""

import os
import signal
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from graphcredit.store.errors import OptionError


def doubled(pieces: Iterator[int]) -> Iterator[tuple[int, int]]:
    """Double numbers."""
    return ((piece, 2 * piece) for piece in pieces)


def two_at_once(pieces: Iterator[int]) -> Iterator[tuple[int, int]]:
    """Take two pieces before the first answer, and answer the second one first."""
    for first in pieces:
        second = next(pieces, None)
        if second is not None:
            yield second, os.getpid()
        yield first, os.getpid()


def deadly(
    folder: Path, deaths: int, pieces: Iterator[int], bad: int = 3
) -> Iterator[tuple[int, int]]:
    """Die at a number, so many times in all; a file in the folder is a death."""
    for piece in pieces:
        if piece == bad and len(list(folder.iterdir())) < deaths:
            (folder / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield piece, 2 * piece


def half_sent(folder: Path, pieces: Iterator[int]) -> Iterator[tuple[int, bytes]]:
    """Die once in the middle of an answer."""
    for piece in pieces:
        if piece == 2 and not list(folder.iterdir()):
            (folder / "dead").touch()
            # A message is its length and then its bytes; the socket is this program's argument.
            os.write(int(sys.argv[1]), struct.pack("!i", 1000) + b"half a message")
            os.kill(os.getpid(), signal.SIGKILL)
        yield piece, b"whole"


def failing(error: str, pieces: Iterator[int]) -> Iterator[tuple[int, int]]:
    """Raise an error of ours, or one of Python's."""
    for piece in pieces:
        if piece == 2:
            raise OptionError("two") if error == "ours" else KeyError("two")
        yield piece, piece


def slow(folder: Path, pieces: Iterator[int]) -> Iterator[tuple[int, int]]:
    """Leave a file when a piece is begun, and one when it is done a moment later."""
    for piece in pieces:
        (folder / f"begun-{piece}").touch()
        time.sleep(0.1)
        (folder / f"done-{piece}").touch()
        yield piece, piece
    (folder / f"closed-{os.getpid()}").touch()


def endless(folder: Path, pieces: Iterator[int]) -> Iterator[tuple[int, int]]:
    """Leave a file named after the process, and never end."""
    for _ in pieces:
        (folder / str(os.getpid())).touch()
        while True:
            time.sleep(1)
        yield
