"""Executed replay: what it measures is what is true, and what it cannot measure it says."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq
import pytest

from graphcredit.collector.collection import collect
from graphcredit.collector.environments import registry
from graphcredit.collector.environments.base import Observation, Task, Transition
from graphcredit.collector.environments.registry import EnvironmentKind
from graphcredit.collector.options import CollectOptions, ReplayOptions
from graphcredit.collector.replaying import shards
from graphcredit.collector.replaying.decisions import LoggedStep, Outline, draw
from graphcredit.collector.replaying.retrace import retrace
from graphcredit.collector.replaying.run import ReplayReport, replay
from graphcredit.store import Store, open_store, read_steps
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import InputError, OptionError
from graphcredit.store.files.lock import alone_in
from graphcredit.store.sql.catalog import run_trusted_query
from tests.collector.maze import Maze
from tests.worlds import trajectory, write_store

WAYS = {
    "A": {"east": "B", "north": "C", "wait": "A"},
    "B": {"east": "WON", "west": "A", "down": "LOST"},
    "C": {"east": "B", "south": "A"},
}
MAX_STEPS = 5
TASKS = [Task(environment="maze", spec=spec) for spec in ("0", "1")]


@pytest.fixture(autouse=True)
def maze(monkeypatch: pytest.MonkeyPatch) -> None:
    def open_maze(spec: str, cache_dir: Path, with_oracle: bool) -> Maze:
        del spec, cache_dir, with_oracle
        return Maze(WAYS)

    kind = EnvironmentKind(list_tasks=lambda *_, **__: TASKS, open=open_maze)
    monkeypatch.setitem(registry.ENVIRONMENTS, "maze", kind)


@cache
def true_value(place: str, steps_left: int) -> float:
    """Return the chance that a random policy wins within some steps."""
    if place in ("WON", "LOST") or not steps_left:
        return float(place == "WON")
    ways = WAYS[place]
    return sum(true_value(there, steps_left - 1) for there in ways.values()) / len(ways)


@cache
def _played(group_size: int) -> "TemporaryDirectory[str]":
    folder = TemporaryDirectory()
    options = CollectOptions(
        policy="random", max_steps=MAX_STEPS, group_size=group_size, workers=0, oracle=False
    )
    collect(Path(folder.name) / "store", TASKS, options)
    return folder


def play(root: Path, group_size: int = 6) -> Store:
    """Copy a store that is played once; each test may change its own."""
    shutil.copytree(Path(_played(group_size).name) / "store", root)
    return open_store(root)


def replay_all(store: Store, **options: Any) -> ReplayReport:
    defaults = {"num_plays": 20, "workers": 0, "num_decisions": 0}
    return replay(store, ReplayOptions(**{**defaults, **options}))


def rows_of(store: Store, where: str = "true") -> list[dict[str, Any]]:
    sql = f"FROM replay WHERE {where} ORDER BY settings, trajectory_id, step_index"
    return run_trusted_query(store, sql).table.to_pylist()


def edit_steps(store: Store, change: Callable[[dict[str, Any]], None]) -> None:
    """Change logged steps in place, as one who tampers with a log does."""
    for shard in store.shards():
        table = pq.read_table(shard.path, partitioning=None)
        rows = table.to_pylist()
        for row in rows:
            change(row)
        pq.write_table(table.from_pylist(rows, schema=table.schema), shard.path)


def test_the_estimates_are_within_their_errors_of_the_exact_values(tmp_path: Path):
    store = play(tmp_path / "s")
    report = replay_all(store, num_plays=300)
    steps = run_trusted_query(store, "FROM replayed ORDER BY trajectory_id, step_index")
    rows = steps.table.to_pylist()
    assert report.num_replayed == len(rows) == sum(t.num_rows for t in read_steps(store)) > 30
    assert (report.is_acting_policy, report.policy, report.num_failed) == (True, "random", 0)
    squares: list[float] = []
    for row in rows:
        left = MAX_STEPS - row["step_index"]
        assert row["steps_left"] == left
        q, v = true_value(row["next_state"], left - 1), true_value(row["state"], left)
        error = row["advantage"] - (q - v)
        assert abs(error) < 4 * row["advantage_se"]
        squares.append((error / row["advantage_se"]) ** 2)
        if row["terminated"] or left == 1:
            assert (row["q"], row["q_plays"]) == (float(row["next_state"] == "WON"), 1)
        else:
            assert row["q_plays"] == 300
        assert row["v_plays"] == 300
        assert row["v_actions"] == len(WAYS[row["state"]])
        assert 0 < row["v_repeats"] < 300
    assert 0.3 < sum(squares) / len(squares) < 1.7
    assert check_store(store).violations == ()


def test_nothing_is_played_beyond_the_limit_of_the_episode(tmp_path: Path):
    """From A it takes two steps to win: with one left, nobody can."""
    store = play(tmp_path / "s", group_size=40)
    replay_all(store)
    last = rows_of(store, "steps_left = 1 AND action IN ('north', 'wait', 'south')")
    assert last
    assert {(row["q"], row["q_plays"]) for row in last} == {(0.0, 1)}
    states = run_trusted_query(store, "SELECT v FROM replayed WHERE steps_left = 1 AND state = 'A'")
    assert set(states.table["v"].to_pylist()) == {0.0}
    assert min(row["advantage_se"] for row in rows_of(store)) > 0


def test_the_result_does_not_depend_on_the_order_nor_on_what_is_asked_together(tmp_path: Path):
    at_once, in_parts = play(tmp_path / "a"), play(tmp_path / "b")
    replay_all(at_once)
    few = replay_all(in_parts, num_decisions=7)
    one = replay_all(in_parts, task=("maze-1",))
    rest = replay_all(in_parts)
    assert few.num_replayed == 7
    assert one.num_already_replayed + rest.num_already_replayed >= 7
    assert rest.num_already_replayed == few.num_replayed + one.num_replayed
    assert rows_of(in_parts) == rows_of(at_once)
    assert replay_all(in_parts).num_replayed == 0
    replay_all(in_parts, seed=1)
    assert {json.loads(row["settings"])["seed"] for row in rows_of(in_parts)} == {0, 1}
    assert [r["v"] for r in rows_of(in_parts, "settings LIKE '%\"seed\": 1}'")] != [
        row["v"] for row in rows_of(at_once)
    ]


def test_decisions_at_one_place_share_their_plays(tmp_path: Path):
    store = play(tmp_path / "s")
    replay_all(store, num_plays=199)
    firsts = rows_of(store, "step_index = 0 AND task_id = 'maze-0'")
    assert len(firsts) == 6
    assert len({row["v"] for row in firsts}) == 1
    others = rows_of(store, "step_index = 0 AND task_id = 'maze-1'")
    assert {row["v"] for row in others} != {row["v"] for row in firsts}


def test_an_interrupted_replay_keeps_what_it_has_and_goes_on(tmp_path: Path):
    whole, store = play(tmp_path / "a"), play(tmp_path / "b")
    replay_all(whole)

    def interrupt(what: str, done: float = 0, total: int = 0, note: str = "") -> None:
        del what, total, note
        if done > 15:
            raise KeyboardInterrupt

    options = ReplayOptions(num_plays=20, workers=0, num_decisions=0)
    with pytest.raises(KeyboardInterrupt):
        replay(store, options, on_progress=interrupt)
    kept = len(rows_of(store))
    assert 15 < kept < len(rows_of(whole))
    assert replay_all(store).num_already_replayed == kept
    assert rows_of(store) == rows_of(whole)


KILLED = """
import os, signal, sys
from graphcredit.collector.options import ReplayOptions
from graphcredit.collector.replaying import shards
from graphcredit.collector.replaying.run import replay

def kill(what, done=0, total=0, note=""):
    if done > 20:
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    shards.FLUSH_SECONDS = 0.0
    replay(sys.argv[1], ReplayOptions(num_plays=4, num_decisions=60, workers=0), on_progress=kill)
"""


@pytest.mark.slow
def test_a_killed_replay_goes_on_and_workers_give_the_same_rows(tmp_path: Path):
    stores: list[Store] = []
    for name in ("killed", "whole", "here"):
        kind = registry.environment_kind("sokoban")
        tasks = kind.list_tasks("5x5b1", num_tasks=3, seed=0)
        options = CollectOptions(policy="oracle:0.6", max_steps=15, group_size=4, workers=0)
        collect(tmp_path / name, tasks, options)
        stores.append(open_store(tmp_path / name))
    script = tmp_path / "killed.py"
    script.write_text(KILLED, encoding="utf-8")
    ended = subprocess.run([sys.executable, script, tmp_path / "killed"], check=False)
    assert ended.returncode == -9
    assert 20 < len(rows_of(stores[0])) < 60
    made = [
        replay(store, ReplayOptions(num_plays=4, num_decisions=60, workers=workers))
        for store, workers in zip(stores, (2, 2, 0), strict=True)
    ]
    assert made[0].num_already_replayed > 20
    assert rows_of(stores[0]) == rows_of(stores[1]) == rows_of(stores[2])
    assert check_store(stores[0]).errors == ()


@pytest.mark.parametrize(
    ("first", "change", "why"),
    [
        # What is seen at step 2 is also what step 1 led to.
        (1, {"state": "Z"}, "another state than the logged one"),
        (1, {"observation": "a door"}, "another observation than the logged one"),
        (1, {"admissible_actions": ["fly"]}, "other admissible actions than the logged ones"),
        (2, {"action": "fly"}, "the action is refused now, and was not when it was logged"),
        (2, {"next_state": "Z"}, "the action leads to another state than the logged one"),
        (2, {"reward": 0.5}, "reward 0 instead of the logged 0.5"),
    ],
)
def test_what_is_not_the_logged_state_again_is_counted_and_never_used(
    tmp_path: Path, first: int, change: dict[str, Any], why: str
):
    store = play(tmp_path / "s")
    name = next(
        row["trajectory_id"]
        for table in read_steps(store)
        for row in table.to_pylist()
        if row["step_index"] == 4
    )

    def tamper(row: dict[str, Any]) -> None:
        if (row["trajectory_id"], row["step_index"]) == (name, 2):
            row |= change

    edit_steps(store, tamper)
    report = replay_all(store)
    num_failed = 5 - first
    assert report.failures == {why: num_failed}
    assert report.first_failure == f"step {first} of {name}"
    own = rows_of(store, f"trajectory_id = '{name}'")
    assert [row["failure"] for row in own] == [None] * first + [f"step 2: {why}"] * num_failed
    numbers = ("q", "q_plays", "v", "v_plays", "v_actions", "v_repeats", "advantage")
    assert {row[name] for row in own[first:] for name in numbers} == {None}
    assert all(row["advantage"] is not None for row in own[:first])
    assert rows_of(store, f"failure IS NOT NULL AND trajectory_id <> '{name}'") == []
    errors = {error.rule.name for error in check_store(store).errors}
    assert errors <= {"unbroken_chain"}
    assert replay_all(store).num_already_replayed == report.num_decisions


def test_a_task_that_nothing_can_play_is_a_failure_beside_those_that_can(tmp_path: Path):
    store = play(tmp_path / "s")
    edit_steps(
        store, lambda row: row.update(task_id="atlantis-1") if row["task_id"] == "maze-1" else None
    )
    report = replay_all(store)
    assert set(report.failures) == {"no environment of this program has such a task"}
    assert report.num_failed + report.num_replayed == report.num_decisions
    edit_steps(store, lambda row: row.update(task_id="atlantis-1"))
    with pytest.raises(OptionError, match="tasks such as 'atlantis-1'"):
        replay_all(store)


def test_a_task_that_cannot_be_opened_is_a_failure(tmp_path: Path):
    store = play(tmp_path / "s")
    edit_steps(store, lambda row: row.update(task_id="sokoban-no-such-board"))
    report = replay_all(store)
    assert (report.num_replayed, report.num_failed) == (0, report.num_decisions)
    assert "the task cannot be opened: " in rows_of(store)[0]["failure"]


def test_another_policy_is_another_replay_and_is_said(tmp_path: Path):
    store = play(tmp_path / "s")
    replay_all(store)
    report = replay_all(store, policy="oracle:0.5")
    assert report.num_already_replayed == 0
    assert report.is_acting_policy is False
    assert report.differences == ("policy 'oracle:0.5' instead of 'random'",)
    found = {(row["policy"], row["is_acting_policy"]) for row in rows_of(store)}
    assert found == {("random", True), ("oracle:0.5", False)}
    assert len({row["settings"] for row in rows_of(store)}) == 2


def without(*names: str) -> Callable[[dict[str, Any]], None]:
    def change(row: dict[str, Any]) -> None:
        if row["extra"]:
            marks = json.loads(row["extra"])
            row["extra"] = json.dumps({k: v for k, v in marks.items() if k not in names})

    return change


def test_a_log_that_does_not_say_who_acted_needs_a_policy_and_a_limit(tmp_path: Path):
    store = play(tmp_path / "s")
    edit_steps(store, without("policy", "max_steps"))
    with pytest.raises(OptionError, match="this log does not say who acted"):
        replay_all(store)
    with pytest.raises(OptionError, match="Name it with --max-steps"):
        replay_all(store, policy="random")
    report = replay_all(store, policy="random", max_steps=MAX_STEPS)
    assert (report.is_acting_policy, report.num_failed) == (None, 0)
    assert {row["is_acting_policy"] for row in rows_of(store)} == {None}


def test_another_limit_than_the_logged_one_is_refused(tmp_path: Path):
    store = play(tmp_path / "s")
    with pytest.raises(OptionError, match="that of the episodes, 5: got 9"):
        replay_all(store, max_steps=9)
    assert replay_all(store, max_steps=5).num_failed == 0


def _mark(**values: Any) -> Callable[[dict[str, Any]], None]:
    def change(row: dict[str, Any]) -> None:
        if row["extra"]:
            row["extra"] = json.dumps(json.loads(row["extra"]) | values)

    return change


def test_a_language_model_must_be_named_and_a_tutor_is_a_random_policy(tmp_path: Path):
    store = play(tmp_path / "s")
    edit_steps(store, _mark(policy="policy-000003", template="1f", weights="2e"))
    with pytest.raises(OptionError, match=r"policy-000003, is a language model.*--policy hf:PATH"):
        replay_all(store)
    edit_steps(store, _mark(policy="tutor:policy-000003"))
    report = replay_all(store)
    assert (report.policy, report.is_acting_policy, report.num_failed) == ("random", True, 0)


def test_an_iteration_of_two_policies_is_not_replayed_as_one(tmp_path: Path):
    store = play(tmp_path / "s")
    mark = _mark(policy="oracle:0.5")
    edit_steps(store, lambda row: mark(row) if row["task_id"] == "maze-1" else None)
    with pytest.raises(OptionError, match="played by one policy"):
        replay_all(store)
    assert replay_all(store, task=("maze-0",)).policy == "random"


def test_two_processes_do_not_replay_one_iteration(tmp_path: Path):
    store = play(tmp_path / "s")
    with (
        alone_in(store.replay_dir("r0", 0), "held"),
        pytest.raises(InputError, match="one process at a time may replay an iteration"),
    ):
        replay_all(store)


def test_incomplete_trajectories_and_copies_of_a_tree_are_no_decisions(tmp_path: Path):
    marks = {"policy": "random", "max_steps": 9}
    steps = [
        *trajectory("x", "A wait A wait A", extra=json.dumps(marks), task_id="maze-0"),
        *trajectory("dead", "A wait A wait A", success=None, task_id="maze-0"),
        *trajectory(
            "y", "A wait A north C", extra=json.dumps(marks | {"shared_steps": 1}), task_id="maze-0"
        ),
    ]
    store = write_store(tmp_path / "s", steps)
    report = replay_all(store)
    assert (report.num_incomplete, report.num_decisions, report.num_failed) == (1, 3, 0)
    found = [(row["trajectory_id"], row["step_index"]) for row in rows_of(store)]
    assert found == [("x", 0), ("x", 1), ("y", 1)]
    with pytest.raises(OptionError, match="'maze-7' has none"):
        replay_all(store, task=("maze-7",))


def test_a_larger_draw_keeps_a_smaller_one():
    outlines = [
        Outline(task_id="t", trajectory_id=name, num_steps=50, marks={}) for name in ("x", "y")
    ]
    keys = draw(outlines, 40, seed=0)
    assert keys[:10] == draw(outlines, 10, seed=0)
    assert sorted(draw(outlines, None, seed=0)) == [(n, i) for n in ("x", "y") for i in range(50)]
    assert draw(outlines, 10, seed=1) != keys[:10]
    assert 8 < sum(name == "x" for name, _ in keys) < 32


class Talker(Maze):
    """Says what it thinks of a refused action, and would accept the answer `east` always."""

    def step(self, action: str) -> Transition:
        done = super().step(action)
        if done.is_action_valid:
            return done
        seen = done.observation
        reply = Observation(
            state=seen.state,
            text=f"You cannot {action}.",
            admissible_actions=seen.admissible_actions,
            oracle_actions=None,
        )
        return Transition(
            observation=reply,
            reward=0.0,
            cost=1.0,
            is_action_valid=False,
            terminated=False,
            success=False,
        )


def _steps(*logged: tuple[str, str | None, str, bool, str]) -> Iterator[LoggedStep]:
    for state, text, action, is_valid, next_state in logged:
        yield LoggedStep(
            state=state,
            next_state=next_state,
            observation=text,
            action=action,
            admissible_actions=None,
            is_action_valid=is_valid,
            reward=0.0,
            terminated=False,
            success=False,
        )


def test_a_refused_action_is_told_from_an_answer_that_the_environment_never_got():
    steps = list(
        _steps(
            ("A", None, "fly", False, "A"),
            ("A", "You cannot fly.", "I think east", False, "A"),
            ("A", "You cannot fly.", "east", True, "B"),
            ("B", None, "west", True, "A"),
        )
    )

    environment = Talker(WAYS)
    places, problem = retrace(environment, steps, 3)
    assert problem is None
    assert environment.told == ["fly", "east", "west"]
    assert [place.sent for place in places] == [(), (), (), ("east",), ("east", "west")]
    seen = [observation.text for observation, _ in places[-1].view.history]
    assert seen == [None, "You cannot fly.", "You cannot fly.", None]
    assert [place.num_steps for place in places] == [0, 1, 2, 3, 4]
    assert len({place.key for place in places}) == 5


def test_rows_are_written_as_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shards, "FLUSH_SECONDS", 0.0)
    store = play(tmp_path / "s")
    report = replay_all(store)
    files = list(store.replay_dir("r0", 0).glob("*.parquet"))
    assert len(files) == 12, "one for each trajectory"
    assert len(rows_of(store)) == report.num_replayed
