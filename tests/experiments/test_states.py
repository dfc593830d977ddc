"""The experiment on evidence: its definitions, and a small version of its table."""

import numpy as np
import polars as pl

from experiments.credit_truth.judge import Played, Unit
from experiments.credit_truth.states.definitions import NAMES, definitions, steps_of
from experiments.credit_truth.states.report import tables
from experiments.credit_truth.states.run import judge

UNIT = Unit(world="road", policy="quarter", seed=0, num_groups=64, estimators=("reach", "graphgpo"))


def test_a_step_leads_to_the_state_that_the_next_one_leaves():
    played = Played.of(UNIT)
    rollouts = played.rollouts
    every = definitions(played.world, rollouts, np.random.default_rng(0))
    goes_on = np.flatnonzero(~rollouts.is_last)
    for name, visits in zip(NAMES, every, strict=True):
        before, after = steps_of(visits, rollouts)
        assert np.array_equal(after[goes_on], before[goes_on + 1]), name
        if name == "true":
            assert np.array_equal(before, rollouts.state)
            assert np.array_equal(after, rollouts.target)


def test_the_true_state_has_most_and_what_tells_nothing_none():
    rows = judge(UNIT)
    evidence = dict(rows.select("definition", "evidence").iter_rows())
    assert evidence["true"] > evidence["in pairs"] > evidence["in eights"] > 0
    assert [evidence[name] for name in ("time", "one", "each")] == [0, 0, 0]
    assert rows.filter(pl.col("definition") == "true")["beyond"].item() > 0.1
    assert "| evidence |" in tables(rows)
