"""Results go to stdout, talk and progress to stderr; bars are drawn on a terminal only."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any, Protocol

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from graphcredit.store.errors import interrupts

out = Console()
"""Results."""

talk = Console(stderr=True)
"""Everything a pipe should not see."""

SILENCE = 30.0
"""Seconds after which a command that draws no bar says where it is."""

PLAIN: dict[str, Any] = {"markup": False, "highlight": False, "soft_wrap": True}
"""For `print`: the text as it is, neither interpreted nor broken into lines."""


@contextmanager
def interruptible(remedy: str) -> Generator[None]:
    """Turn Ctrl-C into one line and exit code 1.

    Args:
        remedy: What the user may do next.
    """
    try:
        with interrupts():
            yield
    except KeyboardInterrupt:
        talk.print(f"Interrupted: the store is valid, and {remedy}.", **PLAIN)
        raise typer.Exit(1) from None


class Show(Protocol):
    """Says how far a command is."""

    def __call__(self, what: str, done: float = 0, total: int = 0, note: str = "") -> None:
        """Take what is being done, how much of how much of it, and a note for the bar.

        Args:
            what: The stage; its clock begins with the first call that names it.
            done: How much of it is done.
            total: Of how much; 0 where that is not known, 1 where `done` is a share.
            note: Something about its newest part.
        """
        ...


@contextmanager
def progress(what: str) -> Generator[Show]:
    """Say on stderr how far a command is: by a bar on a terminal, elsewhere by a line now and then.

    Args:
        what: Its first stage.
    """
    with _bar() if talk.is_terminal else _lines() as show:
        show(what)
        yield show


@contextmanager
def _bar() -> Generator[Show]:
    """Draw a bar; what has no news still turns and counts its seconds."""
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[at]}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=talk,
        transient=True,
    )
    task, stage = bar.add_task("", total=None, at=""), ""

    def show(what: str, done: float = 0, total: int = 0, note: str = "") -> None:
        nonlocal stage
        if what != stage:
            stage = what
            bar.reset(task)
        text = f"{what} {note}".rstrip()
        bar.update(task, description=text, completed=done, total=total or None, at=at(done, total))

    with bar:
        yield show


@contextmanager
def _lines() -> Generator[Show]:
    """Print a line whenever nothing was said for `SILENCE`, news or not."""
    heartbeat = Heartbeat(lambda line: talk.print(line, **PLAIN))
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
    """Where a command is, said once in `SILENCE` at most."""

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = monotonic) -> None:
        """Begin in silence.

        Args:
            say: Takes a line.
            clock: Returns seconds.
        """
        self._say, self._clock, self._lock = say, clock, Lock()
        self._what, self._at = "", ""
        self._began = self._said = clock()

    def show(self, what: str, done: float = 0, total: int = 0, note: str = "") -> None:
        """Take where the command is; see `Show`."""
        del note
        with self._lock:
            if what != self._what:
                self._what, self._began = what, self._clock()
            self._at = at(done, total)
        self.beat()

    def beat(self) -> None:
        """Say where it is if nothing was said for long."""
        with self._lock:
            now = self._clock()
            if now - self._said < SILENCE:
                return
            self._said = now
            where = f"{self._at}, " if self._at else ""
            self._say(f"{self._what}: {where}{now - self._began:.0f} s so far")


def at(done: float, total: int) -> str:
    """Return how much is done, as text; see `Show`."""
    if not total:
        return ""
    share = f"{done / total:.0%}"
    return share if total == 1 else f"{int(done):,} of {total:,} ({share})"
