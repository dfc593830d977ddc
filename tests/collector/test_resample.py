"""Groups of equal returns teach nothing: their task is sampled again."""

from pathlib import Path
from typing import Any

import pytest

from graphcredit.collector.collection import collect
from graphcredit.collector.environments.base import Task
from graphcredit.collector.environments.registry import ENVIRONMENTS
from graphcredit.collector.options import CollectOptions
from graphcredit.collector.playing.resume import Missing, missing_rollouts
from graphcredit.collector.playing.schedule import Settings
from graphcredit.store import Store, open_store, read_steps
from graphcredit.store.errors import OptionError
from tests.worlds import trajectory, write_store

TASK = Task(environment="corridor", spec="a")
SETTINGS = Settings(policy="random", seed=0, max_steps=5, oracle=False)


def _store(root: Path, *rewards: float | None, settings: Settings = SETTINGS) -> Store:
    """Return a store with trajectories of these returns; None leaves one incomplete."""
    played: list[list[dict[str, Any]]] = []
    for index, reward in enumerate(rewards):
        steps = trajectory(
            f"corridor-a:{index}",
            "X go Y go Z",
            rewards=[reward or 0.0, 0.0],
            success=None if reward is None else reward > 0,
            task_id=TASK.task_id,
        )
        steps[0]["extra"] = settings.to_json(num_paths=len(rewards))
        played.append(steps)
    return write_store(root, *played)


def _missing(store: Store, *, num_resamples: int, settings: Settings = SETTINGS) -> Missing:
    return missing_rollouts(
        store,
        run_id="r0",
        iteration=0,
        tasks=[TASK],
        group_size=2,
        settings=settings,
        num_resamples=num_resamples,
    )


def _names(missing: Missing) -> list[str]:
    return [rollout.trajectory_id for rollout in missing.rollouts]


@pytest.mark.parametrize(
    ("returns", "num_resamples", "names"),
    [
        ((0.0, 0.0), 0, []),
        ((0.0, 0.0), 1, [2, 3]),
        ((1.0, 1.0), 1, [2, 3]),
        ((0.0, 1.0), 1, []),
        ((0.0,), 1, [1]),
        ((0.0, 0.0, 0.0, 0.0), 1, []),
        ((0.0, 0.0, 0.0, 0.0), 2, [4, 5]),
        ((0.0, 0.0, 1.0, 1.0), 2, []),
        ((0.0, 0.0, 1.0), 2, [3]),
        ((0.1 + 0.2, 0.3), 1, [2, 3]),
        ((1e-9, 2e-9), 1, []),
    ],
    ids=[
        "nobody asked for more",
        "all failed",
        "all succeeded",
        "they differ",
        "the first group is not complete",
        "it was sampled again as often as allowed",
        "it may be sampled once more",
        "each group agrees, but not with the other",
        "the second group was begun",
        "they differ by rounding",
        "they are small and differ",
    ],
)
def test_another_group_is_due_while_all_returns_of_the_task_are_equal(
    tmp_path: Path, returns: tuple[float, ...], num_resamples: int, names: list[int]
):
    missing = _missing(_store(tmp_path / "store", *returns), num_resamples=num_resamples)
    assert _names(missing) == [f"corridor-a:{index}" for index in names]
    assert missing.num_complete == len(returns)
    assert missing.num_resampled == (min(names, default=0) >= 2)


def test_an_incomplete_trajectory_of_a_later_group_is_played_again(tmp_path: Path):
    store = _store(tmp_path / "store", 0.0, 0.0, None)
    assert _names(_missing(store, num_resamples=1)) == ["corridor-a:2.1", "corridor-a:3"]


TREES = Settings(policy="random", seed=0, max_steps=5, oracle=False, tree_size=2)


def test_a_task_gets_another_tree_when_the_first_agrees_with_itself(tmp_path: Path):
    store = _store(tmp_path / "store", 0.0, 0.0, settings=TREES)
    (rollout,) = _missing(store, num_resamples=1, settings=TREES).rollouts
    assert rollout.trajectory_id == "corridor-a:2"


def test_a_tree_that_needed_no_branch_is_not_sampled_again(tmp_path: Path):
    store = _store(tmp_path / "store", 0.0, settings=TREES)
    missing = _missing(store, num_resamples=1, settings=TREES)
    assert (missing.rollouts, missing.num_complete) == ([], 1)


def _returns(store: Path) -> dict[str, float]:
    columns = ["trajectory_id", "reward"]
    rows = [r for t in read_steps(open_store(store), columns=columns) for r in t.to_pylist()]
    returns = dict.fromkeys((row["trajectory_id"] for row in rows), 0.0)
    for row in rows:
        returns[row["trajectory_id"]] += row["reward"]
    return returns


def test_collecting_samples_a_task_again_until_its_returns_differ(tmp_path: Path):
    tasks = ENVIRONMENTS["search"].list_tasks(None, num_tasks=6, seed=0)
    store = tmp_path / "store"
    options: dict[str, Any] = {
        "policy": "oracle:0.3",
        "group_size": 2,
        "max_steps": 6,
        "workers": 1,
    }
    first = collect(store, tasks, CollectOptions(**options))
    assert (first.num_trajectories, first.num_resampled) == (12, 0)
    agreed = _agreeing(store)
    assert 0 < len(agreed) < 6
    more = CollectOptions(**options, resample_degenerate=3)
    second = collect(store, tasks, more)
    assert second.num_already_complete == 12
    assert second.num_resampled * 2 == second.num_trajectories
    sizes = {task_id: len(of_task) for task_id, of_task in _by_task(store).items()}
    for task in tasks:
        assert (sizes[task.task_id] > 2) == (task.task_id in agreed)
    assert all(sizes[task_id] == 8 for task_id in _agreeing(store))
    assert collect(store, tasks, more).num_trajectories == 0


def _by_task(store: Path) -> dict[str, list[float]]:
    by_task: dict[str, list[float]] = {}
    for name, reward in _returns(store).items():
        by_task.setdefault(name.rpartition(":")[0], []).append(reward)
    return by_task


def _agreeing(store: Path) -> set[str]:
    return {task_id for task_id, returns in _by_task(store).items() if len(set(returns)) == 1}


def test_a_negative_number_of_resamples_is_refused(tmp_path: Path):
    tasks = ENVIRONMENTS["search"].list_tasks(None, num_tasks=1, seed=0)
    with pytest.raises(OptionError, match="resample_degenerate must be at least 0: got -1"):
        collect(tmp_path / "store", tasks, CollectOptions(policy="random", resample_degenerate=-1))
