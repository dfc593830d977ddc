"""The page on a pretrained model: its three commands, with a model from nothing."""

import json
import re
from pathlib import Path

import pytest

from examples.policy_from_gguf import convert
from examples.warm_up import make_model
from tests.cli.in_process import run

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "language-model.md"


@pytest.mark.slow
def test_three_commands_teach_a_model_what_did_better(
    tmp_path: Path, games_dir: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(games_dir.parents[1]))
    make_model(Path("MODEL"), ["take key from table", "go north"], num_tokens=300, seed=0)
    commands = re.findall(r"^    graphcredit (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["collect", "credit", "train"]
    smaller = ("--tasks 32 --group-size 32", "--tasks 2 --group-size 12 --workers 0")
    for command in commands:
        ended = run(*command.replace(*smaller).split())
        assert ended.exit_code == 0, ended.err
    result = json.loads(Path("lm/taught/result.json").read_text(encoding="utf-8"))
    assert result["num_updates"] >= 1
    assert Path("lm/taught/model/model.safetensors").is_file()


def test_what_cannot_be_a_policy_is_refused(tmp_path: Path):
    with pytest.raises(SystemExit, match="there is no file"):
        convert(tmp_path / "none.gguf", tmp_path / "out")
    (tmp_path / "model.gguf").touch()
    with pytest.raises(SystemExit, match="must be new"):
        convert(tmp_path / "model.gguf", tmp_path)
