"""The experiment on evidence: its definitions, and a small version of its table."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from experiments.credit_quality import states
from experiments.credit_quality.judge import Condition, steps_of
from experiments.credit_quality.states import judge as games_judged
from experiments.credit_quality.states import visits_of as games_visits
from experiments.credit_quality.worlds import play
from experiments.credit_truth.judge import Played, Unit
from experiments.credit_truth.states.definitions import NAMES, before, definitions, restated
from experiments.credit_truth.states.run import judge, visits_of
from graphcredit.store import create_store
from tests.worlds import step_table, trajectory

UNIT = Unit(world="road", policy="quarter", seed=0, num_groups=64, estimators=("reach", "graphgpo"))


def test_a_step_leads_to_the_state_that_the_next_one_leaves():
    played = Played.of(UNIT)
    rollouts = played.rollouts
    rng, goes_on = np.random.default_rng(0), ~rollouts.is_last
    every = dict(zip(NAMES, definitions(visits_of(played, rng), rng), strict=True))
    for name, visits in every.items():
        after = before(np.roll(visits, -1), rollouts.is_last)
        following = np.roll(before(visits, rollouts.is_last), -1)
        assert np.array_equal(after[goes_on], following[goes_on]), name
    assert np.array_equal(before(every["true"], rollouts.is_last), rollouts.state)
    assert np.array_equal(before(np.roll(every["true"], -1), rollouts.is_last), rollouts.target)


def test_the_true_state_has_most_and_what_tells_nothing_none():
    rows = judge(UNIT)
    evidence = dict(rows.select("definition", "evidence").iter_rows())
    assert evidence["true"] > evidence["in pairs"] > evidence["in eights"] > 0
    assert [evidence[name] for name in ("time", "one", "each")] == [0, 0, 0]
    assert rows.filter(pl.col("definition") == "true")["beyond"].item() > 0.1


def test_in_games_the_true_state_is_worth_most_and_has_most_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("NUM_LOGS", "NUM_DRAWS"):
        monkeypatch.setattr(states, name, 20)
    games = play(create_store(tmp_path), "sokoban", num_tasks=24)
    condition = Condition(log=tmp_path, world="sokoban", lists="none", games=tuple(games))
    rows = games_judged(steps_of(condition))
    best = rows.sort("worth", descending=True).row(0, named=True)
    assert best["definition"] == rows.sort("evidence", descending=True)["definition"][0] == "true"
    assert best["agreement_low"] > 0.5
    told = dict(rows.select("definition", "evidence").iter_rows())
    assert [told[name] for name in ("time", "one", "each")] == [0, 0, 0]


def test_visits_of_steps_by_hand():
    rows = [
        *trajectory("t0:0", "A a B b C", rewards=[0, 1], success=True),
        *trajectory("t0:1", "A c D"),
        *trajectory("t1:0", "A a B", task_id="t1"),
    ]
    steps = step_table(rows)
    visits = games_visits(steps, np.random.default_rng(0))
    assert visits.state.tolist() == [0, 1, 2, 0, 3, 4, 5]
    assert visits.time.tolist() == [0, 1, 2, 0, 1, 0, 1]
    assert visits.last_action.tolist() == [-1, 0, 1, -1, 2, -1, 0]
    assert set(visits.shuffled[:5]) == {0, 1, 2, 3}
    told = restated(steps, 10 + visits.state)
    assert told["state"].to_pylist() == [f"state {n}" for n in (10, 11, 10, 14)]
    assert told["next_state"].to_pylist() == ["state 11", "won", "state 13", "state 15"]
