"""Console output: results go to stdout, messages and progress to stderr, bars to terminals only."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any

from graphcredit.store.errors import interrupts
from graphcredit.store.log_text import in_json, in_terminal
from graphcredit.store.progress import OnProgress

_settings = {"is_quiet": False}


def be_quiet(*, is_quiet: bool) -> None:
    """Leave out messages and progress, or show them. Errors are written anyway."""
    _settings["is_quiet"] = is_quiet


def is_quiet() -> bool:
    """Return whether messages and progress are left out."""
    return _settings["is_quiet"]


SILENCE = 30.0
"""Seconds without output after which a command without a bar reports its progress."""


def say(line: str = "") -> None:
    """Print a line of the result; control characters in it, which logs may have, are escaped."""
    print(in_terminal(line), flush=True)  # noqa: T201


def tell(line: str) -> None:
    """Print a message, which does not belong in a pipe, in the same way on stderr."""
    if not is_quiet():
        complain(line)


def complain(line: str) -> None:
    """Print why something failed, on stderr; `--quiet` does not hide it."""
    print(in_terminal(line), file=sys.stderr, flush=True)  # noqa: T201


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Print a result as JSON; names of files may have bytes that are not UTF-8."""
    sys.stdout.write(in_json(value, indent=indent) + "\n")
    sys.stdout.flush()


@contextmanager
def interruptible(remedy: str) -> Generator[None]:
    """Turn Ctrl-C into one line and exit code 130.

    Args:
        remedy: The end of that line, which says how to proceed.
    """
    try:
        with interrupts():
            yield
    except KeyboardInterrupt:
        tell(f"Interrupted: the store is valid, and {remedy}.")
        raise SystemExit(130) from None


@contextmanager
def progress(what: str) -> Generator[OnProgress]:
    """Show progress on stderr: a bar on a terminal, elsewhere a line every `SILENCE` seconds.

    Args:
        what: The first stage of the command.
    """
    with _bar() if sys.stderr.isatty() and not is_quiet() else _lines() as show:
        show(what)
        yield show


@contextmanager
def _bar() -> Generator[OnProgress]:
    """Draw a bar, whose spinner and clock move even without news."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[at]}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task, stage = bar.add_task("", total=None, at=""), ""

    def show(what: str, done: float = 0, total: int = 0, note: str = "") -> None:
        nonlocal stage
        if what != stage:
            stage = what
            bar.reset(task)
        text = in_terminal(f"{what} {note}".rstrip())
        bar.update(task, description=text, completed=done, total=total or None, at=at(done, total))

    with bar:
        yield show


@contextmanager
def _lines() -> Generator[OnProgress]:
    """Print a line after every `SILENCE` seconds, with or without news."""
    heartbeat = Heartbeat(tell)
    ended = Event()

    def watch() -> None:
        while not ended.wait(SILENCE / 10):
            heartbeat.beat()

    Thread(target=watch, daemon=True).start()
    try:
        yield heartbeat.show
    finally:
        ended.set()


class Heartbeat:
    """Reports progress in lines, at most one every `SILENCE` seconds."""

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = monotonic) -> None:
        """Start the clock.

        Args:
            say: Called with each line.
            clock: Returns the time in seconds.
        """
        self._say, self._clock, self._lock = say, clock, Lock()
        self._what, self._at = "", ""
        self._began = self._said = clock()

    def show(self, what: str, done: float = 0, total: int = 0, note: str = "") -> None:
        """Show progress; see `OnProgress`."""
        del note
        with self._lock:
            if what != self._what:
                self._what, self._began = what, self._clock()
            self._at = at(done, total)
        self.beat()

    def beat(self) -> None:
        """Print a line if the last one is `SILENCE` seconds old."""
        with self._lock:
            now = self._clock()
            if now - self._said < SILENCE:
                return
            self._said = now
            where = f"{self._at}, " if self._at else ""
            self._say(f"{self._what}: {where}{now - self._began:.0f} s so far")


def at(done: float, total: int) -> str:
    """Return the progress as text, such as `3 of 4 (75%)`; see `OnProgress`."""
    if not total:
        return ""
    share = f"{done / total:.0%}"
    return share if total == 1 else f"{int(done):,} of {total:,} ({share})"
