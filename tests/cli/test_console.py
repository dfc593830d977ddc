"""Progress: a bar on a terminal, elsewhere a line after a long silence."""

from io import StringIO

import pytest

from graphcredit.cli.output.console import SILENCE, Heartbeat, at, progress


class _Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_where_a_command_is_is_said_once_in_so_many_seconds_news_or_not():
    said: list[str] = []
    clock = _Clock()
    heartbeat = Heartbeat(said.append, clock)
    heartbeat.show("load the model")
    clock.now += SILENCE - 1
    heartbeat.beat()
    assert said == []
    clock.now += 1
    heartbeat.beat()
    assert said == ["load the model: 30 s so far"]
    heartbeat.show("train", 0, 1000)
    clock.now += SILENCE - 1
    heartbeat.show("train", 12.5, 1000)
    assert len(said) == 1
    clock.now += 6
    heartbeat.show("train", 250, 1000)
    heartbeat.show("train", 251, 1000)
    assert said[1:] == ["train: 250 of 1,000 (25%), 35 s so far"]
    clock.now += SILENCE
    heartbeat.beat()
    assert said[2:] == ["train: 251 of 1,000 (25%), 65 s so far"]


@pytest.mark.parametrize(
    ("done", "total", "text"),
    [(0, 0, ""), (0.43, 1, "43%"), (0.5, 4, "0 of 4 (12%)"), (1234, 5678, "1,234 of 5,678 (22%)")],
)
def test_a_share_moves_within_one_of_one(done: float, total: int, text: str):
    assert at(done, total) == text


def test_a_short_command_says_nothing_off_a_terminal(capsys: pytest.CaptureFixture[str]):
    with progress("check") as show:
        show("check", 1, 2)
    assert capsys.readouterr() == ("", "")


def test_a_bar_says_what_is_done_and_how_much_of_it(monkeypatch: pytest.MonkeyPatch):
    screen = StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("COLUMNS", "200")
    with progress("loop") as show:
        show("log-probabilities: [start]", 0.43, 1, "loss 0.5")
    assert "log-probabilities: [start] loss 0.5" in screen.getvalue()
    assert "43%" in screen.getvalue()
