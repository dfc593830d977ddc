"""The prompt of `graphcredit sql STORE`: reads statements, with history."""

import os
import readline
from collections.abc import Callable, Iterator
from pathlib import Path

_MOST_LINES = 1000
"""Lines of history that are kept."""

_ENDS = ("exit", "quit")

Read = Callable[[str], str]
"""Shows a prompt and returns a line; raises EOFError at the end, as `input` does."""


def read_statements(read: Read = input) -> Iterator[str]:
    """Yield the statements that a user types; each ends with a semicolon, or an empty line.

    Ctrl-C discards what was typed. Ctrl-D, `exit` or `quit` ends the prompt.
    """
    lines: list[str] = []
    while True:
        try:
            line = read("   ...> " if lines else "graphcredit> ")
        except KeyboardInterrupt:
            lines = []
            print()  # noqa: T201
            continue
        except EOFError:
            print()  # noqa: T201
            return
        if not lines and line.strip().rstrip(";").lower() in _ENDS:
            return
        if line.strip():
            lines.append(line)
        if lines and (not line.strip() or line.rstrip().endswith(";")):
            yield "\n".join(lines)
            lines = []


def history_path() -> Path:
    """Return where the history is kept, as the XDG directories say."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "graphcredit" / "sql_history"


def open_history() -> None:
    """Read the history of earlier prompts."""
    readline.set_history_length(_MOST_LINES)
    path = history_path()
    if path.is_file():
        readline.read_history_file(path)


def save_history() -> None:
    """Save the history, which only its user may read.

    Raises:
        OSError: The file cannot be written.
    """
    path = history_path()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    readline.write_history_file(path)
    path.chmod(0o600)
