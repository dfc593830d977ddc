"""Results go to stdout, talk and progress to stderr; bars are drawn on a terminal only."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from graphcredit.store.errors import interrupts

out = Console()
"""Results."""

talk = Console(stderr=True)
"""Everything a pipe should not see."""

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


def progress_bar() -> Progress:
    """Return a progress bar on stderr; it draws nothing when stderr is not a terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=talk,
        disable=not talk.is_terminal,
        transient=True,
    )
