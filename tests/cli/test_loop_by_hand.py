"""The commands, typed by hand, make the policies that the loop makes."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from graphcredit.cli.main import app
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine import kept
from graphcredit.trainer.engine.engine import TrainingEngine
from graphcredit.trainer.engine.opening import open_engine
from tests.cli.loop_worlds import corridor_loop, register_corridors, run, save_talker

LAST = 2


def _type(*words: str | Path) -> None:
    done = CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output


def _by_hand(root: Path, number: int) -> None:
    """Make the policy after `number`, with the options of `corridor_loop`."""
    store, policies = root / "hand" / "store", root / "hand" / "policies"
    before, after = (policies / f"policy-{n:06d}" for n in (number, number + 1))
    template = root / "start" / "corridor.toml"
    where = ["--run", "r0", "--iteration", str(number)]
    _type(
        *("collect", store, "--env", "corridor", "--policy", f"hf:{before / 'model'}", *where),
        *("--tasks", "2", "--group-size", "4", "--max-steps", "6", "--max-new-tokens", "1"),
        *("--template", template, "--concurrency", "1", "--workers", "0"),
    )
    _type("credit", store, "--estimator", "graphgpo", "--estimator", "grpo", *where)
    go_on = ["--continue-from", before] if number else []
    _type(
        *("train", store, "--model", before / "model", "--out", after, *where, *go_on),
        *("--reference", policies / "policy-000000" / "model"),
        *("--advantage", "graphgpo", "--kl-coefficient", "0.02", "--learning-rate", "0.01"),
        *("--batch-size", "8", "--device", "cpu"),
    )


def test_the_commands_by_hand_make_the_same_bytes_as_a_loop_that_loads_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    register_corridors()
    model = save_talker(tmp_path / "start")
    loaded: list[bool] = []

    def count(name: str, config: TrainConfig, *, frozen: bool = False) -> TrainingEngine:
        loaded.append(frozen)
        return open_engine(name, config, frozen=frozen)

    monkeypatch.setattr(kept, "open_engine", count)
    run(corridor_loop(tmp_path, "loop", evaluate=None))
    assert loaded == [False, True], "the model and the reference, once each"
    first = tmp_path / "hand" / "policies" / "policy-000000"
    first.mkdir(parents=True)
    (first / "model").symlink_to(model)
    for number in range(LAST):
        _by_hand(tmp_path, number)
    looped, typed = (
        {path.name: path.read_bytes() for path in (policies / "model").iterdir()}
        for policies in (tmp_path / w / "policies" / f"policy-{LAST:06d}" for w in ("loop", "hand"))
    )
    assert "model.safetensors" in looped
    assert looped == typed
