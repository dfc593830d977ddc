"""Collecting, credit and collecting again: trees in several processes that may die."""

import json
import os
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from graphcredit.collector.collection import CollectReport, collect
from graphcredit.collector.environments.base import Task
from graphcredit.collector.environments.registry import ENVIRONMENTS
from graphcredit.collector.options import CollectOptions
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import open_store, read_steps
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import OptionError
from graphcredit.store.progress import OnProgress, silent
from tests.workers import worker_pids

TASKS = ENVIRONMENTS["search"].list_tasks("2hop", num_tasks=4, seed=0)


def _collect(
    store: Path, tasks: Sequence[Task] = TASKS, on_progress: OnProgress = silent, **options: Any
) -> CollectReport:
    options = {
        "policy": "oracle:0.4",
        "max_steps": 7,
        "group_size": 4,
        "workers": 1,
        "iteration": 1,
        "allocation": "spo3",
        **options,
    }
    return collect(store, tasks, CollectOptions(**options), on_progress=on_progress)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with an iteration that has credit."""
    store = tmp_path_factory.mktemp("begun") / "store"
    _collect(store, iteration=0, allocation=None, group_size=8, workers=0)
    assign_credit(open_store(store), CreditSettings(estimators=configure(["spo3"])))
    return store


@pytest.fixture(scope="module")
def played(begun: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CollectReport]:
    """Return a store with a second iteration, played without workers, and what was said of it."""
    store = tmp_path_factory.mktemp("played") / "store"
    shutil.copytree(begun, store)
    return store, _collect(store, workers=0)


@pytest.fixture
def store(begun: Path, tmp_path: Path) -> Path:
    return shutil.copytree(begun, tmp_path / "store")


def _trees(store: Path) -> dict[str, list[tuple[str, str, dict[str, Any]]]]:
    """Return state, action and extra of each step, by trajectory without its attempt."""
    tables = read_steps(open_store(store), iteration=1)
    rows = [row for table in tables for row in table.to_pylist()]
    complete = {row["trajectory_id"] for row in rows if row["success"] is not None}
    trees: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for row in sorted(rows, key=lambda row: (row["trajectory_id"], row["step_index"])):
        if row["trajectory_id"] in complete:
            step = (row["state"], row["action"], json.loads(row["extra"] or "{}"))
            trees.setdefault(row["trajectory_id"].partition(".")[0], []).append(step)
    return trees


def test_trees_branch_behind_the_root_and_share_what_is_mastered(
    played: tuple[Path, CollectReport],
):
    store, report = played
    trees = _trees(store)
    assert report.num_trajectories == len(trees)
    assert report.num_steps == sum(map(len, trees.values()))
    shared = [steps[0][2].get("shared_steps", 0) for steps in trees.values()]
    assert max(shared) > 0
    for steps in trees.values():
        extra = steps[0][2]
        other = trees[extra.get("branched_from", next(iter(trees)))]
        length = extra.get("shared_steps", 0)
        assert [step[:2] for step in steps[:length]] == [step[:2] for step in other[:length]]
    assert check_store(open_store(store)).violations == ()


def test_trees_are_the_same_whoever_plays_them(store: Path, played: tuple[Path, CollectReport]):
    _collect(store, workers=2)
    assert _trees(store) == _trees(played[0])


def test_trees_of_a_worker_that_died_are_played_again(
    store: Path, played: tuple[Path, CollectReport]
):
    def kill(what: str, done: float = 0, total: int = 0, note: str = "") -> None:
        if not killed:
            killed.extend(worker_pids())
            os.kill(killed[0], signal.SIGKILL)

    killed: list[int] = []
    _collect(store, on_progress=kill)
    assert len(killed) == 1
    assert _trees(store) == _trees(played[0])
    assert _collect(store, workers=0).num_trajectories == 0


def test_an_iteration_that_has_credit_already_is_not_played_on_by_its_own_counts(store: Path):
    """Killed, credited, and collected again: the rest would branch by what the first part did."""
    whole = shutil.copytree(store, store.parent / "whole")
    _collect(whole, workers=0)
    assign_credit(open_store(whole), CreditSettings(estimators=configure(["spo3"])))
    assert _collect(whole, workers=0).num_trajectories == 0
    assert _collect(whole, iteration=2, workers=0).num_trajectories > 0
    _collect(store, tasks=TASKS[:2], workers=0)
    assign_credit(open_store(store), CreditSettings(estimators=configure(["spo3"])))
    before = _trees(store)
    with pytest.raises(
        OptionError, match=r"iteration 1 is to be played, .* also counts iterations 1,"
    ):
        _collect(store, workers=0)
    assert _trees(store) == before


def test_credit_takes_a_store_with_trees_as_any_other(
    played: tuple[Path, CollectReport], tmp_path: Path
):
    store = shutil.copytree(played[0], tmp_path / "store")
    reports = assign_credit(
        open_store(store), CreditSettings(estimators=configure(["spo3", "graphgpo"]))
    )
    report = reports["r0", 1]
    assert (report.num_trajectories, report.num_incomplete) == (played[1].num_trajectories, 0)
    assert report.num_groups == 4


def test_an_allocation_that_is_not_known_is_refused_before_a_store_is_made(tmp_path: Path):
    with pytest.raises(OptionError, match="allocation must be 'spo3': got 'greedy'"):
        _collect(tmp_path / "store", allocation="greedy")
    assert not (tmp_path / "store").exists()
