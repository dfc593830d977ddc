"""What a loop is made of: the same bytes by hand, a policy that learns, summaries by hand."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from graphcredit.cli.main import app
from graphcredit.loop.summary import Summary, summarise
from graphcredit.store.errors import InputError
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine import kept
from graphcredit.trainer.engine.engine import TrainingEngine
from graphcredit.trainer.engine.opening import open_engine
from tests.cli.loop_worlds import corridor_loop, register_corridors, run, save_talker
from tests.worlds import trajectory, write_store

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


def test_a_policy_learns_to_walk_east(tmp_path: Path):
    """The first policy walks at random, which rarely wins a corridor of three rooms."""
    save_talker(tmp_path / "start")
    config = corridor_loop(
        tmp_path,
        "out",
        iterations=3,
        collect={"games": "3", "group_size": 8},
        train={"learning_rate": 0.03, "kl_coefficient": 0.0},
    )
    first, _, last, _ = run(config)
    assert first["success_rate"] < 0.5
    assert last["success_rate"] > 0.9


def test_complete_trajectories_are_counted_and_dead_ones_are_not(tmp_path: Path):
    won = trajectory("t0:0", "A a B b C", rewards=[-1.0, 10.0], success=True)
    lost = trajectory("t0:1", "A q A a B c D d E", invalid=(0,))
    dead = trajectory("t0:2", "A a B b C c D", success=None)
    store = write_store(tmp_path / "s", won + lost, dead)
    assert summarise(store, "r0", 0) == Summary(
        num_trajectories=2,
        num_env_steps=6,
        success_rate=1 / 2,
        mean_return=9 / 2,
        mean_length=6 / 2,
        valid_share=5 / 6,
    )


def test_steps_that_branches_share_are_taken_once(tmp_path: Path):
    stem = trajectory("t0:0", "A a B b C c D")
    branch = trajectory("t0:1", "A a B b C d E", success=True)
    branch[0]["extra"] = '{"branched_from": "t0:0", "shared_steps": 2}'
    summary = summarise(write_store(tmp_path / "s", stem + branch), "r0", 0)
    assert (summary.num_env_steps, summary.mean_length) == (4, 3)


def test_some_tasks_are_counted_alone(tmp_path: Path):
    won = trajectory("t0:0", "A a B", success=True)
    lost = trajectory("t1:0", "A a B", task_id="t1")
    store = write_store(tmp_path / "s", won + lost)
    rates = [summarise(store, "r0", 0, tasks).success_rate for tasks in (["t0"], ["t1"], None)]
    assert rates == [1, 0, 0.5]


def test_an_iteration_without_complete_trajectories_is_refused(tmp_path: Path):
    store = write_store(tmp_path / "s", trajectory("t0:0", "A a B", success=None))
    with pytest.raises(InputError, match="found none"):
        summarise(store, "r0", 0)
