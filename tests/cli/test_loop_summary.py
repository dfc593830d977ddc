"""The summary of an iteration, counted by hand."""

from pathlib import Path

import pytest

from graphcredit.loop.summary import Summary, summarise
from graphcredit.store.errors import InputError
from tests.worlds import trajectory, write_store


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
