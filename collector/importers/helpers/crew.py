"""Processes that help to read: each is told of a piece, and sends what it became."""

import subprocess
import sys
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe

from graphcredit.collector.importers.helpers.pieces import Piece, PieceRead, read_piece
from graphcredit.collector.importers.helpers.transfer import receive
from graphcredit.collector.importers.options import ImportOptions
from graphcredit.store.processors import num_processors

MOST_HELPERS = 3

WORKER = "graphcredit.collector.importers.helpers.worker"
"""The program of a helper."""

_TOLD = 2
"""Pieces that a helper is told of: the next one, too, so that it need not wait."""

_KEPT = 4
"""Pieces that are read and wait for one before them, at which the import waits, too."""


def num_helpers() -> int:
    """Return how many helpers this machine has processors for, beside the import itself."""
    return min(num_processors() - 1, MOST_HELPERS)


class _Slot:
    """A piece in its order, and what it became."""

    def __init__(self, piece: Piece) -> None:
        self.piece = piece
        self.helper: _Helper | None = None
        """Who was told of it."""
        self.found: PieceRead | None = None


class _Helper:
    """A process that reads pieces. If it dies, nobody is told of its pieces."""

    def __init__(self, options: ImportOptions) -> None:
        self._connection: Connection
        self._connection, other = Pipe()
        with other:
            self._process = subprocess.Popen(
                # -P: a module in the user's working directory must not shadow ours.
                [sys.executable, "-P", "-m", WORKER, str(other.fileno())],
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        self._told: deque[_Slot] = deque()
        self._options = options
        self._is_started = self._has_died = False

    @property
    def has_time(self) -> bool:
        """Whether it can be told of a piece."""
        return self._is_started and not self._has_died and len(self._told) < _TOLD

    def tell(self, slot: _Slot) -> None:
        """Let it read a piece."""
        try:
            self._connection.send(slot.piece)
        except OSError:
            self._die()
            return
        slot.helper = self
        self._told.append(slot)

    def take(self) -> None:
        """Take everything that it has read by now."""
        while not self._has_died and self._connection.poll():
            self.wait()

    def wait(self) -> None:
        """Take the next piece that it reads."""
        try:
            if self._is_started:
                self._told[0].found = receive(self._connection)
                self._told.popleft()
            else:
                self._is_started = self._connection.recv()
                self._connection.send(self._options)
        except (EOFError, OSError):
            self._die()

    def _die(self) -> None:
        self._has_died = True
        for slot in self._told:
            slot.helper = None
        self._told.clear()

    def end(self) -> None:
        """End it, whatever it does."""
        self._connection.close()
        self._process.kill()
        self._process.wait()


class Crew:
    """This process and its helpers."""

    def __init__(self, options: ImportOptions) -> None:
        """Start the helpers, and do not wait for them; `end` must follow."""
        self._options = options
        self.helpers: list[_Helper] = []
        # A machine that starts no more processes, or opens no more files, reads with fewer.
        with suppress(OSError):
            for _ in range(num_helpers()):
                self.helpers.append(_Helper(options))

    def end(self) -> None:
        """End the helpers."""
        for helper in self.helpers:
            helper.end()

    def read(self, pieces: Iterator[Piece]) -> Generator[PieceRead]:
        """Yield what pieces became, in their order."""
        slots: deque[_Slot] = deque()
        while True:
            self._tell(pieces, slots)
            first = slots[0] if slots else None
            if first is not None and first.found is not None:
                yield first.found
                slots.popleft()
            elif (slot := self._own(pieces, slots)) is not None:
                slot.found = read_piece(slot.piece, self._options)
            elif first is not None and first.helper is not None:
                first.helper.wait()
            else:
                return

    def _tell(self, pieces: Iterator[Piece], slots: deque[_Slot]) -> None:
        """Take what the helpers have read, and tell them of more."""
        for helper in self.helpers:
            helper.take()
            while helper.has_time:
                piece = next(pieces, None)
                if piece is None:
                    return
                slots.append(_Slot(piece))
                helper.tell(slots[-1])

    def _own(self, pieces: Iterator[Piece], slots: deque[_Slot]) -> _Slot | None:
        """Return a piece to read here; None if there is none, or if enough are read."""
        left = next((slot for slot in slots if slot.helper is None and slot.found is None), None)
        if left is not None or sum(slot.found is not None for slot in slots) >= _KEPT:
            return left
        piece = next(pieces, None)
        if piece is None:
            return None
        slots.append(_Slot(piece))
        return slots[-1]
