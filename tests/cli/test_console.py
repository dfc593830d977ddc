"""Progress: a bar on a terminal, nothing elsewhere."""

from io import StringIO

import pytest
from rich.console import Console

from graphcredit.cli.output import console
from graphcredit.cli.output.console import at, progress


@pytest.mark.parametrize(
    ("done", "total", "text"),
    [(0, 0, ""), (0.43, 1, "43%"), (0.5, 4, "0 of 4 (12%)"), (1234, 5678, "1,234 of 5,678 (22%)")],
)
def test_a_share_moves_within_one_of_one(done: float, total: int, text: str):
    assert at(done, total) == text


def test_a_command_says_nothing_of_its_progress_off_a_terminal(capsys: pytest.CaptureFixture[str]):
    with progress("check") as show:
        show("check", 1, 2)
    assert capsys.readouterr() == ("", "")


def test_a_bar_says_what_is_done_and_how_much_of_it(monkeypatch: pytest.MonkeyPatch):
    screen = StringIO()
    monkeypatch.setattr(console, "talk", Console(file=screen, force_terminal=True, width=200))
    with progress("loop") as show:
        show("log-probabilities: [start]", 0.43, 1, "loss 0.5")
    assert "log-probabilities: [start] loss 0.5" in screen.getvalue()
    assert "43%" in screen.getvalue()
