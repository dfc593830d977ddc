"""Whether credit can be believed: with waits, by its values, and where nothing can be told."""

import polars as pl
import pytest

from experiments.credit_truth.believe import Case, judge_case
from experiments.credit_truth.judge import MANY, Unit

UNIT = Unit(world="lake", policy="quarter", seed=0, num_groups=MANY, estimators=("grpo", "reach"))


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    cases = [Case(kind=f"waits {waits}", waits=waits, unit=UNIT) for waits in (0, 2)]
    return pl.concat(map(judge_case, cases))


def figure(rows: pl.DataFrame, name: str, credit: str, waits: int) -> float:
    return rows.filter(credit=credit, kind=f"waits {waits}")[name].item()


def test_waits_change_no_credit_that_reads_returns_alone(rows: pl.DataFrame):
    for name in ("one", "many"):
        assert figure(rows, name, "grpo", 2) == pytest.approx(figure(rows, name, "grpo", 0))


def test_grpo_is_centred_and_where_nobody_meets_credit_is_compared_with_it(rows: pl.DataFrame):
    assert figure(rows, "alone_max", "grpo", 0) == figure(rows, "lost_max", "grpo", 0) == 0
    assert figure(rows, "apart_correlation", "grpo", 0) == pytest.approx(1)
    assert figure(rows, "apart_correlation", "reach", 0) > 0.5


def test_values_are_compared_with_the_truth(rows: pl.DataFrame):
    assert abs(figure(rows, "bias_first", "reach", 0)) < 0.3
    assert 0 < figure(rows, "rmse", "reach", 0) < 0.5
    bins = rows.filter(credit="reach", kind="waits 0")["bins"].item().to_list()
    assert len(bins) == 4
    count, *sums = (sum(each) for each in bins)
    assert all(0 < total < count for total in sums)
