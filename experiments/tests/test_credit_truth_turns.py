"""Rewards and scores of turns: judges say what they should, and rewards change no return."""

import numpy as np
import polars as pl
import pytest

from experiments.credit_truth.judge import Played, Unit
from experiments.credit_truth.rollouts import step_table
from experiments.credit_truth.turns.judges import JUDGES, with_rewards, with_scores
from experiments.credit_truth.turns.run import TurnUnit, judge_turns

UNIT = Unit(world="lift", policy="quarter", seed=0, num_groups=16, estimators=())


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    return judge_turns(TurnUnit(unit=UNIT))


def fraction(rows: pl.DataFrame, judge: str, logged: str, credit: str) -> float:
    return rows.filter(judge=judge, logged=logged, credit=credit, num_groups=16)["fraction"].item()


def test_the_chance_to_win_has_the_outcomes_as_its_mean():
    played = Played.of(UNIT)
    said = JUDGES["the chance to win"](played, np.random.default_rng(0))
    rollouts = played.rollouts
    won = played.world.is_won[rollouts.target] & rollouts.is_last
    # At the end it is the outcome, and after the first step it is right on average.
    assert said[rollouts.is_last].tolist() == won[rollouts.is_last].astype(float).tolist()
    first = said[rollouts.time == 0]
    margin = 4 * np.sqrt(first.var() / len(first)) + 1e-9
    assert abs(first.mean() - played.exact.success) < margin


@pytest.mark.parametrize("judge", JUDGES)
def test_rewards_of_turns_change_no_return(judge: str):
    played = Played.of(UNIT)
    steps = step_table(played.world, played.rollouts, lists="none")
    said = JUDGES[judge](played, np.random.default_rng(0))
    paid = with_rewards(steps, said, played.rollouts)
    changed = paid["reward"].to_numpy() - steps["reward"].to_numpy()
    assert np.abs(changed).max() > 0
    assert (np.bincount(played.rollouts.episode, changed) == 0).all()
    assert with_scores(steps, said)["score"].to_pylist() == said.tolist()


def test_who_believes_a_judge_gains_or_loses_by_it_and_the_return_does_not(rows: pl.DataFrame):
    plain = fraction(rows, "nobody", "nothing", "rloo")
    for judge in JUDGES:
        assert fraction(rows, judge, "rewards", "rloo") == pytest.approx(plain)
    brief = "turn_rloo, gamma 0.5"
    right, wrong = (
        fraction(rows, judge, "rewards", brief) for judge in ("the chance to win", "misleading")
    )
    assert wrong < fraction(rows, "misleading", "rewards", "turn_rloo") < right
