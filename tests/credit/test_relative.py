"""Group-relative values, by hand."""

import numpy as np

from graphcredit.credit.estimators.relative import has_spread, relative

ONE_GROUP = np.zeros(3, np.int64)


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
