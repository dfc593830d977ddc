"""`graphcredit train`: what its flags become, and what it says on the way."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from graphcredit.cli.main import app

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
