"""The README is a session: its commands run, in order, and print what it says."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphcredit.store import open_store, read_steps

README = Path(__file__).parent.parent / "README.md"
BLOCK = re.compile(r"```(console|python)\n(.*?)```", re.DOTALL)


def session() -> Iterator[tuple[list[str], list[str]]]:
    """Yield each command of the README and the lines it is said to print."""
    for language, text in BLOCK.findall(README.read_text(encoding="utf-8")):
        if language == "python":
            yield [sys.executable, "-c", text], []
            continue
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, *printed = part.splitlines()
            program, *arguments = shlex.split(command)
            assert program == "graphcredit"
            yield [sys.executable, "-m", "graphcredit.cli.main", *arguments], printed


def test_the_log_of_the_readme_may_be_written_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (code,) = [command[2] for command, _ in session() if "StepRecorder" in command[-1]]
    exec(code)
    with pytest.warns(match="2 trajectories already in the store"):
        exec(code)
    assert sum(table.num_rows for table in read_steps(open_store("my-store"))) == 3


def test_a_log_of_the_readme_is_credited_and_asked_as_it_says(tmp_path: Path):
    commands = [command for command in session() if _needs_no_game(command[0])]
    assert len(commands) == 3
    _must_print_what_it_says(commands, tmp_path)


def _needs_no_game(command: list[str]) -> bool:
    """Return whether a command writes `my-store` by hand, or works on it."""
    return "StepRecorder" in command[-1] or ("my-store" in command and "collect" not in command)


@pytest.mark.slow
@pytest.mark.play
def test_the_commands_of_the_readme_print_what_it_says(tmp_path: Path):
    commands = list(session())
    assert len(commands) >= 8
    _must_print_what_it_says(commands, tmp_path)


def _must_print_what_it_says(commands: list[tuple[list[str], list[str]]], directory: Path) -> None:
    for command, expected in commands:
        result = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
        assert result.returncode == 0, (command, result.stderr)
        _assert_in_order(expected, result.stdout.splitlines())


def _assert_in_order(expected: list[str], printed: list[str]) -> None:
    """Each expected line follows the one before; `…` stands for any lines, or a line's rest."""
    position = 0
    for number, line in enumerate(expected):
        if line == "…":
            continue
        start = line.removesuffix("…").rstrip()
        found = [
            i
            for i in range(position, len(printed))
            if (
                printed[i].startswith(start) if line.endswith("…") else printed[i].rstrip() == start
            )
        ]
        assert found, f"{line!r} is not in what follows:\n" + "\n".join(printed[position:])
        may_skip = number == 0 or expected[number - 1] == "…"
        assert may_skip or found[0] == position, f"{line!r} does not follow at once"
        position = found[0] + 1
