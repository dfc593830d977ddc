"""Trees in the store: whole trajectories that say what they share."""

import json
from pathlib import Path
from typing import Any

import pytest

from graphcredit.collector import StepRecorder
from graphcredit.collector.environments.base import Task
from graphcredit.collector.playing.branching import record as trees
from graphcredit.collector.playing.branching.allocation import Allocation, StateScore
from graphcredit.collector.playing.branching.record import tree
from graphcredit.collector.playing.episode import drive
from graphcredit.collector.playing.job import Job, Outcome
from graphcredit.collector.playing.resume import Missing, missing_rollouts
from graphcredit.collector.playing.schedule import Settings
from graphcredit.collector.policies.registry import parse_policy
from graphcredit.store import Store, create_store, read_steps
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import InputError, OptionError
from tests.collector.maze import Maze
from tests.worlds import write_store

TASK = Task(environment="maze", spec="0")
WAYS = {
    "A": {"b": "B", "c": "C"},
    "B": {"a": "A", "d": "D"},
    "C": {"d": "D", "win": "WON"},
    "D": {"a": "A"},
}
SETTINGS = Settings(policy="random", seed=3, max_steps=5, oracle=False, tree_size=4)
"""Of this seed, the tree below has four paths, one of them from within another."""


def _missing(store: Store, **options: Any) -> Missing:
    options = {"settings": SETTINGS} | options
    return missing_rollouts(store, run_id="r0", iteration=0, tasks=[TASK], group_size=4, **options)


def _play(store: Store, worker_id: str = "w0") -> list[Outcome]:
    """Play what is missing of the tree: two decisions in A and B, one in C and D."""
    scores: dict[tuple[str, str | None], StateScore] = {
        (TASK.task_id, state): StateScore(num_total=0, score=0.5, num_rollouts=number)
        for state, number in {"A": 2, "B": 2, "C": 1, "D": 1}.items()
    }
    allocation = Allocation(tree_size=4, scores=scores)
    job = Job(
        store=store,
        run_id="r0",
        iteration=0,
        policy=parse_policy("random"),
        settings=SETTINGS,
        cache_dir=store.root,
    )
    with StepRecorder(store, run_id="r0", iteration=0, worker_id=worker_id) as recorder:
        plays = (
            tree(job, Maze(WAYS), rollout, recorder, allocation)
            for rollout in _missing(store).rollouts
        )
        return [outcome for ended in drive(plays, job.policy, 1) for outcome in ended]


def _steps(store: Store) -> dict[str, list[dict[str, Any]]]:
    """Return the steps of each trajectory, in the order in which they began."""
    rows = [row for table in read_steps(store) for row in table.to_pylist()]
    names = dict.fromkeys(row["trajectory_id"] for row in rows)
    return {
        name: sorted(
            (row for row in rows if row["trajectory_id"] == name), key=lambda row: row["step_index"]
        )
        for name in names
    }


def _walked(steps: list[dict[str, Any]]) -> str:
    return " ".join([f"{step['state']}-{step['action']}" for step in steps])


def test_every_path_is_a_whole_trajectory_that_says_what_it_shares(tmp_path: Path):
    store = create_store(tmp_path / "store")
    outcomes = _play(store)
    steps = _steps(store)
    assert {name: _walked(of_path) for name, of_path in steps.items()} == {
        "maze-0:0": "A-b B-d D-a A-b B-d",
        "maze-0:1": "A-b B-d D-a A-c C-win",
        "maze-0:2": "A-b B-a A-b B-a A-c",
        "maze-0:3": "A-c C-d D-a A-b B-a",
    }
    settings = json.loads(SETTINGS.to_json()) | {"num_paths": 4}
    assert [json.loads(of_path[0]["extra"]) for of_path in steps.values()] == [
        settings,
        settings | {"branched_from": "maze-0:0", "shared_steps": 3},
        settings | {"branched_from": "maze-0:0", "shared_steps": 1},
        settings | {"branched_from": "maze-0:0", "shared_steps": 0},
    ]
    assert [outcome.trajectory_id for outcome in outcomes] == list(steps)
    assert [(o.num_steps, o.success, o.truncated) for o in outcomes] == [
        (5, False, True),
        (5, True, False),
        (5, False, True),
        (5, False, True),
    ]
    ends = [(s[-1]["terminated"], s[-1]["truncated"], s[-1]["success"]) for s in steps.values()]
    assert ends[:2] == [(False, True, False), (True, False, True)]


def test_a_store_with_trees_breaks_no_rule(tmp_path: Path):
    store = create_store(tmp_path / "store")
    _play(store)
    assert check_store(store).violations == ()


def test_a_tree_that_is_complete_is_not_played_again(tmp_path: Path):
    store = create_store(tmp_path / "store")
    _play(store)
    assert _missing(store) == Missing(rollouts=[], num_complete=4)


def test_a_tree_with_fewer_paths_than_it_may_have_is_complete_too(tmp_path: Path):
    store = create_store(tmp_path / "store")
    steps = _steps_of_whole_tree(tmp_path / "whole")["maze-0:0"]
    steps[0]["extra"] = SETTINGS.to_json(num_paths=1)
    write_store(store.root, steps)
    assert _missing(store) == Missing(rollouts=[], num_complete=1)


def test_a_tree_whose_worker_died_is_played_again_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    whole = _steps_of_whole_tree(tmp_path / "whole")
    store = create_store(tmp_path / "store")
    recorded: list[str] = []
    record = trees._record  # pyright: ignore[reportPrivateUsage]

    def record_two(job: Any, group: Any, task_id: str, name: str, *rest: Any) -> None:
        recorded.append(name)
        if len(recorded) == 3:
            raise KeyboardInterrupt
        record(job, group, task_id, name, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(trees, "_record", record_two)
        with pytest.raises(KeyboardInterrupt):
            _play(store)
    assert recorded == list(whole)[:3]
    assert _steps(store) == {}
    _play(store, "w9")
    assert {name: _walked(path) for name, path in _steps(store).items()} == {
        name: _walked(path) for name, path in whole.items()
    }


@pytest.mark.parametrize("lost", ["maze-0:0", "maze-0:2", "maze-0:3"])
def test_a_tree_that_lost_a_trajectory_is_refused(tmp_path: Path, lost: str):
    whole = _steps_of_whole_tree(tmp_path / "whole")
    del whole[lost]
    store = write_store(tmp_path / "store", *whole.values())
    message = f"it has {', '.join(whole)}, but not {lost} of the same tree"
    with pytest.raises(InputError, match=rf"must be in the store as a whole: {message}"):
        _missing(store)


def test_rollouts_that_are_no_tree_are_not_mixed_with_trees(tmp_path: Path):
    store = create_store(tmp_path / "store")
    _play(store)
    alone = Settings(policy="random", seed=3, max_steps=5, oracle=False)
    with pytest.raises(OptionError, match=r'maze-0:0 is in the store with .*"tree_size": 4'):
        _missing(store, settings=alone)


def _steps_of_whole_tree(root: Path) -> dict[str, list[dict[str, Any]]]:
    store = create_store(root)
    _play(store)
    return _steps(store)
