"""Means, and rows that are kept for the next run."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.jobs import made
from experiments.means import mean, students_t
from experiments.ranks import spearman, spearman_within


def test_a_mean_is_over_the_units_that_have_the_number():
    found = mean([0.5, None, 0.5])
    assert (found.value, found.low, found.high) == (0.5, 0.5, 0.5)
    # A mean of two units is 0, 1/2 or 1, with probabilities 1/4, 1/2 and 1/4.
    found = mean([0.0, 1.0])
    assert (found.value, found.low, found.high) == (0.5, 0.0, 1.0)
    assert str(mean([None]).value) == "nan"


@dataclass(frozen=True)
class _Job:
    name: str
    path: Path
    """A file with a line for each time that a job was done."""


def _make(job: _Job) -> pl.DataFrame:
    with job.path.open("a") as file:
        file.write(f"{job.name}\n")
    return pl.DataFrame({"job": [job.name]})


def _first(job: _Job) -> str:
    return f"{job.name}, first options"


def _second(job: _Job) -> str:
    return f"{job.name}, second options"


def test_rows_are_kept_until_what_decides_them_changes(tmp_path: Path):
    jobs = [_Job(name, tmp_path / "done") for name in ("b", "a")]
    for made_by in (_first, _first, _second):
        rows = made(tmp_path / "rows", jobs, _make, made_by, 1)
        assert rows["job"].to_list() == ["b", "a"]
    assert (tmp_path / "done").read_text().split() == ["b", "a", "b", "a"]


def test_rank_correlation_within_cells_by_hand():
    steps = pl.DataFrame(
        {
            "truth": [1.0, 2, 3, 1, 2, 3, 5, 5, 1, 2, None],
            "credit": [10.0, 20, 30, 2, 3, 1, 1, 2, 7, 7, 9],
            "cell": [0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3],
        }
    )
    cells = spearman_within(steps, "cell")
    # Cell 2 has one truth and does not count; in cell 3 the credit is constant.
    assert cells["correlation"].to_list() == [1.0, -0.5, None, 0.0]
    assert cells["num_steps"].to_list() == [3, 3, 2, 2]


def test_equal_values_share_their_mean_rank():
    # Ranks 3, 1.5, 1.5 and 1, 2, 3: the covariance is -1.5, the variances are 1.5 and 2.
    assert spearman(pl.Series([9.0, 4, 4]), pl.Series([1, 2, 3])) == pytest.approx(-(0.75**0.5))


@given(st.integers(2, 10))
def test_an_interval_has_the_probability_of_students_t(count: int):
    """The density, integrated numerically within the interval of numbers with error 1."""
    gaps = np.linspace(-1, 1, count)
    found, freedom = students_t(gaps), count - 1
    error = gaps.std(ddof=1) / np.sqrt(count)
    t = np.linspace(found.low / error, found.high / error, 200_001)
    scale = math.gamma(count / 2) / math.gamma(freedom / 2) / math.sqrt(freedom * math.pi)
    inside = np.trapezoid(scale * (1 + t**2 / freedom) ** (-count / 2), t)
    assert inside == pytest.approx(0.95, abs=1e-4)


def test_of_one_number_anything_may_be_the_mean():
    found = students_t([0.25])
    assert (found.value, found.low, found.high) == (0.25, -math.inf, math.inf)
