"""`graphcredit train`: what its flags become, and what it says on the way."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from graphcredit.cli.main import app
from graphcredit.cli.output import console

_RESULT = {
    "model": "m",
    "column": "graphgpo_advantage",
    "num_updates": 1,
    "num_steps": 2,
    "num_kept": 2,
    "dropped": {},
    "num_masked_tokens": 0,
    "last": {},
}


def test_its_flags_are_the_options_of_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked: list[int] = []

    def train(config: Any, *, on_progress: Any, **_: Any) -> dict[str, Any]:
        asked.append(config.max_tokens)
        on_progress("train", 0.5, 1, "loss 0.25")
        return _RESULT

    monkeypatch.setattr("graphcredit.trainer.training.train", train)
    command = ["train", str(tmp_path), "--model", "m", "--out", "o", "--max-tokens", "9"]
    shown = CliRunner().invoke(app, command, catch_exceptions=False)
    assert shown.exit_code == 0
    assert shown.stderr == ""
    assert asked == [9]


@pytest.mark.parametrize("flag", ["--context-parallel", "--restart", "--moments"])
def test_a_flag_that_is_not_there_is_refused_by_name(tmp_path: Path, flag: str):
    shown = CliRunner().invoke(app, ["train", str(tmp_path), flag, "2"])
    assert shown.exit_code == 2
    assert "No such option" in shown.output
    assert flag in shown.output


@pytest.mark.parametrize(("rank", "is_quiet"), [("0", False), ("1", True)])
def test_the_first_process_alone_draws_a_bar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: str, is_quiet: bool
):
    seen: list[bool] = []

    def train(*_: Any, **__: Any) -> None:
        seen.append(console.is_quiet())

    monkeypatch.setattr("graphcredit.trainer.training.train", train)
    console.be_quiet(is_quiet=False)
    monkeypatch.setenv("RANK", rank)
    CliRunner().invoke(app, ["train", str(tmp_path), "--model", "m", "--out", "o"])
    assert seen == [is_quiet]
