"""`graphcredit train`: what its flags become, and what it says on the way."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from graphcredit.cli.main import app
from graphcredit.cli.output.console import talk
from graphcredit.store.errors import OptionError

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


@pytest.mark.parametrize("flags", [[], ["--restart", "--max-step-tokens", "9"]])
def test_beginning_anew_is_asked_for_by_its_flag_and_kept_out_of_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str]
):
    asked: list[tuple[bool, int | None]] = []

    def train(config: Any, *, restart: bool, on_progress: Any, **_: Any) -> dict[str, Any]:
        asked.append((restart, config.max_step_tokens))
        assert "restart" not in config.as_toml()
        on_progress("train", 0.5, 1, "loss 0.25")
        return _RESULT

    monkeypatch.setattr("graphcredit.trainer.training.train", train)
    command = ["train", str(tmp_path), "--model", "m", "--out", "o", *flags]
    shown = CliRunner().invoke(app, command, catch_exceptions=False)
    assert shown.exit_code == 0
    assert shown.stderr == ""
    assert asked == [(bool(flags), 9 if flags else None)]


@pytest.mark.parametrize(("rank", "is_quiet"), [("0", False), ("1", True)])
def test_the_first_process_alone_draws_a_bar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: str, is_quiet: bool
):
    seen: list[bool] = []

    def train(*_: Any, **__: Any) -> None:
        seen.append(talk.quiet)

    monkeypatch.setattr("graphcredit.trainer.training.train", train)
    monkeypatch.setattr(talk, "quiet", False)
    monkeypatch.setenv("RANK", rank)
    CliRunner().invoke(app, ["train", str(tmp_path), "--model", "m", "--out", "o"])
    assert seen == [is_quiet]


def test_processes_are_started_by_torchrun_and_not_by_the_option_of_the_dry_run(tmp_path: Path):
    command = ["train", str(tmp_path), "--model", "m", "--out", "o", "--processes", "4"]
    with pytest.raises(OptionError, match="torchrun --nproc-per-node 4"):
        CliRunner().invoke(app, command, catch_exceptions=False)
