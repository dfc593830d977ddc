"""Collecting groups of real games, in several processes that may die."""

import os
import re
import signal
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from graphcredit.collector.collection import CollectReport, collect, default_cache_dir
from graphcredit.collector.environments.base import Task
from graphcredit.collector.environments.prefix_cache import Environments
from graphcredit.collector.environments.registry import ENVIRONMENTS
from graphcredit.collector.options import CollectOptions
from graphcredit.store import open_store, read_steps
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import MissingDependencyError, OptionError, StoreFormatError
from graphcredit.store.extras import how_to_install
from graphcredit.store.progress import OnProgress, silent
from tests.workers import worker_pids

GAMES = "coin-l105-s1,custom-r5o5q4-s2"
TASKS = ENVIRONMENTS["textworld"].list_tasks(GAMES, num_tasks=2, seed=0)
BOARDS = ENVIRONMENTS["sokoban"].list_tasks("6x6b1", num_tasks=2, seed=0)


def _collect(
    store: Path,
    games_dir: Path,
    on_progress: OnProgress = silent,
    tasks: Sequence[Task] = TASKS,
    **options: Any,
) -> CollectReport:
    options = {"policy": "oracle:0.7", "group_size": 4, "max_steps": 8} | options
    options["games_dir"] = games_dir
    return collect(store, tasks, CollectOptions(**options), on_progress=on_progress)


def _actions(store: Path) -> dict[str, list[str]]:
    """Return the actions of every trajectory of a store, in order."""
    columns = ["trajectory_id", "step_index", "action"]
    rows = [
        row for table in read_steps(open_store(store), columns=columns) for row in table.to_pylist()
    ]
    actions: dict[str, list[str]] = {}
    for row in sorted(rows, key=lambda row: (row["trajectory_id"], row["step_index"])):
        actions.setdefault(row["trajectory_id"], []).append(row["action"])
    return actions


def _ends(store: Path) -> Counter[str]:
    """Return how often each trajectory has ended."""
    tables = read_steps(open_store(store), columns=["trajectory_id", "success"])
    rows = [row for table in tables for row in table.to_pylist()]
    return Counter(row["trajectory_id"] for row in rows if row["success"] is not None)


def _ids(tasks: Sequence[Task], group_size: int) -> set[str]:
    return {f"{task.task_id}:{index}" for task in tasks for index in range(group_size)}


@pytest.mark.play
def test_every_trajectory_is_played_once_and_counted(tmp_path: Path, games_dir: Path):
    told: list[tuple[float, int]] = []
    report = _collect(
        tmp_path / "store",
        games_dir,
        on_progress=lambda what, *progress: told.append(progress),
        workers=0,
    )
    assert _ends(tmp_path / "store") == dict.fromkeys(_ids(TASKS, 4), 1)
    assert report.num_trajectories == 8
    assert report.num_steps == sum(map(len, _actions(tmp_path / "store").values()))
    assert report.num_success + report.num_lost + report.num_truncated == 8
    assert told == [(count, 8) for count in range(1, 9)]
    assert list((tmp_path / "store" / "spool").glob("*.jsonl")) == []


def test_a_full_store_is_left_alone_and_a_larger_group_is_filled_up(tmp_path: Path):
    store = tmp_path / "store"
    play = partial(_collect, store, tmp_path, tasks=BOARDS, workers=0)
    play(group_size=2)
    before = _actions(store)
    full = play(group_size=2)
    assert (full.num_already_complete, full.num_trajectories, full.num_steps) == (4, 0, 0)
    assert _actions(store) == before
    more = play(group_size=3)
    assert (more.num_already_complete, more.num_trajectories) == (4, 2)
    assert _ends(store) == dict.fromkeys(_ids(BOARDS, 3), 1)


def test_what_killed_workers_left_is_played_by_others_and_no_step_is_doubled(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    store = tmp_path / "store"
    play = partial(_collect, games_dir=tmp_path, tasks=BOARDS, group_size=6)

    def kill_one(what: str, done: float = 0, total: int = 0, note: str = "") -> None:
        if done in (1, 4):
            os.kill(worker_pids()[0], signal.SIGKILL)

    report = play(store, on_progress=kill_one, concurrency=3)
    assert len(caplog.messages) == 2
    assert report.num_recovered_steps > 0
    ended = _ends(store)
    assert set(ended.values()) == {1}
    assert len(ended) == 12
    assert {name.partition(".")[0] for name in ended} == _ids(BOARDS, 6)
    assert report.num_trajectories <= 12
    assert check_store(open_store(store)).errors == ()
    assert play(store).num_already_complete == 12
    play(tmp_path / "whole", workers=0)
    played = {name.partition(".")[0]: _actions(store)[name] for name in ended}
    assert played == _actions(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.play
def test_an_interrupt_lets_every_worker_finish_its_trajectory(tmp_path: Path, games_dir: Path):
    store = tmp_path / "store"

    def interrupt(what: str, done: float = 0, total: int = 0, note: str = "") -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _collect(store, games_dir, on_progress=interrupt)
    assert worker_pids() == []
    begun = _actions(store)
    assert set(_ends(store)) == set(begun)
    assert 0 < len(begun) < 8
    report = _collect(store, games_dir, workers=0)
    assert report.num_already_complete == len(begun)
    assert _ends(store) == dict.fromkeys(_ids(TASKS, 4), 1)
    _collect(tmp_path / "uninterrupted", games_dir, workers=0)
    assert _actions(store) == _actions(tmp_path / "uninterrupted")


def test_what_a_worker_cannot_do_is_raised_here(tmp_path: Path):
    impossible = Task(environment="sokoban", spec="6x6b1")
    with pytest.raises(OptionError, match="got '6x6b1'"):
        collect(tmp_path / "store", [impossible], CollectOptions(policy="random"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"group_size": 0}, r"collect\.group_size must be at least 1: got 0"),
        ({"max_steps": -1}, r"collect\.max_steps must be at least 1: got -1"),
        ({"workers": -1}, r"collect\.workers must be at least 0: got -1"),
        ({"concurrency": 0}, r"collect\.concurrency must be at least 1: got 0"),
        ({"allocation": "all"}, r"collect\.allocation must be 'spo3': got 'all'"),
        ({"policy": None}, r"collect\.policy must be text: got None"),
        ({"num_workers": 1}, "collect has no option 'num_workers'; its options: policy,"),
        ({"policy": "best"}, "vllm-server:PATH@SERVER and tutor:PATH: got 'best'"),
    ],
)
def test_wrong_options_are_refused_before_a_store_is_made(
    tmp_path: Path, options: dict[str, Any], message: str
):
    with pytest.raises(OptionError, match=message):
        collect(tmp_path / "store", TASKS, CollectOptions(**({"policy": "random"} | options)))
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([TASKS[0], TASKS[0]], "textworld-coin-l105-s1 is there 2 times"),
        ([Task(environment="chess", spec="e4")], "environments are textworld"),
    ],
)
def test_wrong_tasks_are_refused_before_a_store_is_made(
    tmp_path: Path, tasks: list[Task], message: str
):
    with pytest.raises(OptionError, match=message):
        collect(tmp_path / "store", tasks, CollectOptions(policy="random"))
    assert not (tmp_path / "store").exists()


def test_workers_do_not_play_in_given_environments(tmp_path: Path):
    with pytest.raises(OptionError, match="workers must be 0 to play in given environments: got 2"):
        collect(
            tmp_path / "store",
            TASKS,
            CollectOptions(policy="random", workers=2),
            environments=Environments(),
        )
    assert not (tmp_path / "store").exists()


def test_a_directory_with_other_things_is_not_made_a_store(tmp_path: Path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(StoreFormatError, match=r"holds 'thesis\.tex'"):
        collect(tmp_path, TASKS, CollectOptions(policy="random"))


def test_a_missing_library_is_named_with_what_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("graphcredit.collector.environments.registry.find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=re.escape(how_to_install("play"))):
        collect(tmp_path / "store", TASKS, CollectOptions(policy="random"))


def test_games_are_kept_where_the_user_keeps_caches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache_dir() == tmp_path / "graphcredit" / "games"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", "/home/ada")
    assert default_cache_dir() == Path("/home/ada/.cache/graphcredit/games")
