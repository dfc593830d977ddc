"""Group-relative values, by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.credit.estimators.relative import has_spread, relative, relative_to_others

ONE_GROUP = np.zeros(3, np.int64)


def test_the_standard_deviation_is_that_of_a_sample():
    # mean 2, sample variance (1 + 0 + 1) / 2 = 1
    values = relative(np.array([1.0, 2.0, 3.0]), ONE_GROUP, 1)
    np.testing.assert_allclose(values, [-1 / (1 + 1e-6), 0, 1 / (1 + 1e-6)], atol=1e-15)


def test_without_normalisation_only_the_mean_is_subtracted():
    values = relative(np.array([1.0, 2.0, 6.0]), ONE_GROUP, 1, normalize="none")
    assert values.tolist() == [-2.0, -1.0, 3.0]


def test_a_group_of_one_gives_zero():
    assert relative(np.array([5.0]), np.array([0]), 1).tolist() == [0.0]
    assert relative_to_others(np.array([5.0]), np.array([0]), 1).tolist() == [0.0]


def test_values_that_differ_by_rounding_alone_are_equal():
    values = np.array([0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1, 0.6])
    assert len(set(values.tolist())) > 1, "precondition: rounding made them differ"
    assert relative(values, ONE_GROUP, 1).tolist() == [0.0, 0.0, 0.0]
    assert not has_spread(values, ONE_GROUP, 1)[0]


def test_a_value_at_the_mean_gives_zero():
    values = np.array([0.1, 0.2, 0.3])
    assert values.sum() / 3 != 0.2, "precondition: rounding moves the mean"
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        assert relative(values[order], ONE_GROUP, 1)[order.index(1)] == 0.0


def test_a_small_difference_between_large_values_counts():
    values = relative(np.array([1e9, 1e9 + 0.5, 1e9 + 1.0]), ONE_GROUP, 1)
    np.testing.assert_allclose(values, [-1, 0, 1], atol=1e-5)


def test_weights_repeat_a_value():
    # 1 counted twice and 4 once: mean 2, sample variance (1 + 1 + 4) / 2 = 3
    values = relative(np.array([1.0, 4.0]), np.zeros(2, int), 1, weights=np.array([2.0, 1.0]))
    np.testing.assert_allclose(values, np.array([-1, 2]) / (3**0.5 + 1e-6), rtol=1e-12)


def test_empty_groups_do_not_matter():
    values = relative(np.array([1.0, 3.0]), np.array([2, 2]), 5, normalize="none")
    assert values.tolist() == [-1.0, 1.0]


@given(
    values=st.lists(st.floats(-100, 100), min_size=2, max_size=8),
    shift=st.floats(-10, 10),
    scale=st.floats(0.5, 20),
)
def test_shifting_and_scaling_change_relative_values_only_through_epsilon(
    values: list[float], shift: float, scale: float
):
    group = np.zeros(len(values), np.int64)
    array = np.array(values)
    if array.std() < 0.1:
        return
    moved = relative(array * scale + shift, group, 1)
    assert moved == pytest.approx(relative(array, group, 1), abs=1e-3)
