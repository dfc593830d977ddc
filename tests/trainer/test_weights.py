"""Token weights, worked out by hand."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.trainer.weights import Aggregation, step_weights
from tests.trainer.indexes import index_of


def _weights(aggregation: Aggregation, **columns: list[int]) -> list[float]:
    index = index_of([1, 2, 1, 4], **columns)
    return step_weights(index, np.arange(4), aggregation, 10).tolist()


def test_each_token_counts_the_same_in_the_token_mean():
    assert _weights("token-mean") == pytest.approx([1 / 8] * 4)


def test_each_step_counts_the_same_in_the_sequence_mean():
    assert _weights("seq-mean") == pytest.approx([1 / 4, 1 / 8, 1 / 4, 1 / 16])


def test_sums_are_divided_by_the_steps_and_by_the_constant_length():
    assert _weights("seq-sum") == pytest.approx([1 / 4] * 4)
    assert _weights("dr-grpo") == pytest.approx([1 / 40] * 4)


def test_each_trajectory_counts_the_same_however_long_it_is():
    # Trajectory 0 has 1 + 2 + 1 tokens in three steps, trajectory 1 has 4 in one.
    weights = _weights("trajectory-mean", trajectory=[0, 0, 0, 1])
    assert weights == pytest.approx([1 / 8, 1 / 8, 1 / 8, 1 / 8])
    weights = _weights("trajectory-mean", trajectory=[0, 1, 1, 1])
    assert weights == pytest.approx([1 / 2, 1 / 14, 1 / 14, 1 / 14])


def test_each_group_counts_the_same():
    weights = _weights("group-mean", trajectory=[0, 1, 2, 3], group=[5, 5, 5, 9])
    assert weights == pytest.approx([1 / 8, 1 / 8, 1 / 8, 1 / 8])


def test_masked_tokens_do_not_count():
    # 1, 2, 1 and 4 - 3 tokens are scored.
    assert _weights("token-mean", masked=[0, 0, 0, 3]) == pytest.approx([1 / 5] * 4)
    assert _weights("seq-mean", masked=[0, 0, 0, 3])[3] == pytest.approx(1 / 4)


def test_only_what_is_in_the_batch_counts():
    index = index_of([1, 2, 1, 4], trajectory=[0, 0, 1, 1])
    weights = step_weights(index, np.array([1, 3]), "trajectory-mean", 10)
    assert weights.tolist() == pytest.approx([1 / 4, 1 / 8])


@given(
    steps=st.lists(
        st.tuples(st.integers(1, 50), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30
    ),
    aggregation=st.sampled_from(get_args(Aggregation)),
)
def test_the_sum_over_all_tokens_is_known(
    steps: list[tuple[int, int, int]], aggregation: Aggregation
):
    responses, trajectory, group = (list(column) for column in zip(*steps, strict=True))
    index = index_of(responses, trajectory=trajectory, group=group)
    weights = step_weights(index, np.arange(len(steps)), aggregation, 7)
    total = sum(responses)
    expected = {"seq-sum": total / len(steps), "dr-grpo": total / len(steps) / 7}
    assert (weights > 0).all()
    assert weights @ index.num_scored == pytest.approx(expected.get(aggregation, 1.0))
