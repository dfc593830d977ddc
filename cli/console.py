"""Results go to stdout, talk and progress to stderr; bars are drawn on a terminal only."""

from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

out = Console()
"""Results."""

talk = Console(stderr=True)
"""Everything a pipe should not see."""

PLAIN: dict[str, Any] = {"markup": False, "highlight": False, "soft_wrap": True}
"""For `print`: the text as it is, neither interpreted nor broken into lines."""


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
