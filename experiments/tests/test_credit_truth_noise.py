"""Credit under noise: states come back, and with them what credit is worth."""

import polars as pl
import pytest

from experiments.credit_truth.judge import Unit
from experiments.credit_truth.noise.judge import NONE, NoisyUnit, judge_noisy, noisy

UNIT = Unit(world="lift", policy="quarter", seed=0, num_groups=16, estimators=())


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    chosen = [of for of in noisy([UNIT]) if of.noise in (NONE, "sensed")]
    return pl.concat([judge_noisy(of) for of in chosen])


def fractions(rows: pl.DataFrame, **of: str) -> dict[str, float]:
    found = rows.filter(lists="none", **of)
    return dict(zip(found["credit"], found["fraction"], strict=True))


def test_without_noise_the_merge_changes_nothing(rows: pl.DataFrame):
    exact = fractions(rows, noise=NONE, merge="exact")
    assert fractions(rows, noise=NONE, merge="segments") == pytest.approx(exact)
    assert exact["graphgpo"] > exact["grpo"] + 0.1


def test_noise_takes_what_the_graph_gave_and_segments_give_it_back(rows: pl.DataFrame):
    clean = fractions(rows, noise=NONE, merge="exact")
    lost = fractions(rows, noise="sensed", merge="exact")
    found = fractions(rows, noise="sensed", merge="segments")
    assert lost["graphgpo"] == pytest.approx(clean["grpo"], abs=0.02)
    assert found["graphgpo"] == pytest.approx(clean["graphgpo"])
    assert found["reach"] == pytest.approx(clean["reach"], abs=0.05)
    # GRPO has no states.
    assert lost["grpo"] == found["grpo"] == clean["grpo"]


def test_pairs_of_steps_are_counted(rows: pl.DataFrame):
    noisy_rows = rows.filter(noise="sensed", credit="grpo", lists="none")
    of = {row["merge"]: row for row in noisy_rows.iter_rows(named=True)}
    assert (of["exact"]["precision"], of["exact"]["recall"]) == (1.0, 0.0)
    assert (of["segments"]["precision"], of["segments"]["recall"]) == (1.0, 1.0)


def test_each_unit_has_each_noise_once():
    of = noisy([UNIT])
    assert len({each.name for each in of}) == len(of) == 13
    assert all(isinstance(each, NoisyUnit) and each.unit.estimators for each in of)
