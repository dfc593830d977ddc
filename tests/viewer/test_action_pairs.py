"""Two iterations compared, on numbers worked out by hand."""

import numpy as np
import pyarrow as pa
import pytest

from graphcredit.viewer.steps.agreement import ActionPairs


def _table(**advantages: float) -> pa.Table:
    """Return actions; a letter is a key."""
    return pa.table({"key": [ord(k) for k in advantages], "advantage": [*advantages.values()]})


def test_only_what_both_have_is_compared():
    pairs = ActionPairs.of(_table(a=1.0, b=2.0, c=3.0), _table(b=-4.0, d=5.0, c=6.0))
    assert pairs.key.tolist() == [ord("b"), ord("c")]
    assert pairs.left.tolist() == [2.0, 3.0]
    assert pairs.right.tolist() == [-4.0, 6.0]
    assert pairs.is_flip().tolist() == [True, False]
    assert pairs.correlation() == pytest.approx(1.0)


def test_what_never_varies_has_no_correlation():
    assert ActionPairs.of(_table(a=1.0, b=1.0), _table(a=1.0, b=2.0)).correlation() is None
    assert ActionPairs.of(_table(a=1.0), _table(a=2.0)).correlation() is None


def test_differences_are_counted_in_standard_deviations():
    # Spreads 1 and 10: a and b agree but for the scale, c and d have changed places.
    pairs = ActionPairs.of(
        _table(a=1.0, b=-1.0, c=1.0, d=-1.0), _table(a=10.0, b=-10.0, c=-10.0, d=10.0)
    )
    assert pairs.most_different(9, only_flips=False).tolist() == [2, 3]
    assert pairs.most_different(1, only_flips=True).tolist() == [2]


def test_flips_alone_leave_out_what_only_grew():
    pairs = ActionPairs.of(_table(a=1.0, b=-1.0, c=0.5), _table(a=9.0, b=1.0, c=0.0))
    assert [chr(k) for k in pairs.key[pairs.most_different(9, only_flips=True)]] == ["b"]


def test_each_pair_is_in_one_cell_and_the_far_ones_are_at_the_end():
    left = {chr(97 + i): 0.0 for i in range(24)}
    pairs = ActionPairs.of(_table(**left, z=100.0), _table(**left, z=-100.0))
    cells = pairs.cells().to_pylist()
    # 24 zeros and ±100: a spread of 19.6, so the far one is 5.1 of them away.
    assert cells == [
        {"x": 0.0, "y": 0.0, "steps": 24},
        {"x": pytest.approx(3.0), "y": pytest.approx(-3.0), "steps": 1},
    ]


def test_nothing_in_common_is_no_error():
    pairs = ActionPairs.of(_table(a=1.0), _table(b=1.0))
    assert pairs.cells().num_rows == len(pairs.most_different(5, only_flips=False)) == 0
    assert pairs.correlation() is None
    assert np.size(pairs.is_flip()) == 0
