"""Token weights, worked out by hand."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.trainer.batching.aggregation import step_weights
from graphcredit.trainer.batching.plan import make_plan
from graphcredit.trainer.options import Aggregation
from tests.trainer.indexes import index_of


@pytest.mark.parametrize(
    ("aggregation", "columns", "expected"),
    [
        ("token-mean", {}, [1 / 8] * 4),
        ("seq-mean", {}, [1 / 4, 1 / 8, 1 / 4, 1 / 16]),
        ("seq-sum", {}, [1 / 4] * 4),
        ("dr-grpo", {}, [1 / (4 * 512)] * 4),
        # Trajectory 0 has 1 + 2 + 1 tokens in three steps, trajectory 1 has 4 in one.
        ("trajectory-mean", {"trajectory": [0, 0, 0, 1]}, [1 / 8] * 4),
        ("trajectory-mean", {"trajectory": [0, 1, 1, 1]}, [1 / 2, 1 / 14, 1 / 14, 1 / 14]),
        ("group-mean", {"trajectory": [0, 1, 2, 3], "group": [5, 5, 5, 9]}, [1 / 8] * 4),
        # 1, 2, 1 and 4 - 3 tokens are scored.
        ("token-mean", {"masked": [0, 0, 0, 3]}, [1 / 5] * 4),
        ("seq-mean", {"masked": [0, 0, 0, 3]}, [1 / 4, 1 / 8, 1 / 4, 1 / 4]),
    ],
)
def test_the_unit_of_an_aggregation_has_equal_weight(
    aggregation: Aggregation, columns: dict[str, list[int]], expected: list[float]
):
    """Four steps of 1, 2, 1 and 4 response tokens in one batch."""
    index = index_of([1, 2, 1, 4], **columns)
    weights = step_weights(index, np.arange(4), aggregation, num_updates=1)
    assert weights.tolist() == pytest.approx(expected)


def test_means_over_tokens_and_steps_are_those_of_the_batch():
    index, batch = index_of([1, 2, 1, 4]), np.array([1, 3])
    assert step_weights(index, batch, "token-mean", num_updates=2).tolist() == pytest.approx(
        [1 / 6] * 2
    )
    assert step_weights(index, batch, "seq-mean", num_updates=2).tolist() == pytest.approx(
        [1 / 4, 1 / 8]
    )


def test_a_trajectory_in_several_batches_has_the_weight_of_its_whole_epoch():
    # Two batches; trajectory 0 has 1 + 2 tokens, trajectory 1 has 1 + 4: 2 / (2 · 3), 2 / (2 · 5).
    index = index_of([1, 2, 1, 4], trajectory=[0, 0, 1, 1])
    first = step_weights(index, np.array([0, 1]), "trajectory-mean", num_updates=2)
    second = step_weights(index, np.array([2, 3]), "trajectory-mean", num_updates=2)
    assert first.tolist() == pytest.approx([1 / 3, 1 / 3])
    assert second.tolist() == pytest.approx([1 / 5, 1 / 5])
    lone = step_weights(index, np.array([1, 3]), "trajectory-mean", num_updates=2)
    assert lone.tolist() == pytest.approx([1 / 3, 1 / 5])


@given(
    steps=st.lists(
        st.tuples(st.integers(1, 50), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30
    ),
    aggregation=st.sampled_from(get_args(Aggregation)),
)
def test_the_sum_over_all_tokens_of_an_only_batch_is_known(
    steps: list[tuple[int, int, int]], aggregation: Aggregation
):
    responses, trajectory, group = (list(column) for column in zip(*steps, strict=True))
    index = index_of(responses, trajectory=trajectory, group=group)
    weights = step_weights(index, np.arange(len(steps)), aggregation, num_updates=1)
    total = sum(responses)
    expected = {"seq-sum": total / len(steps), "dr-grpo": total / len(steps) / 512}
    assert (weights > 0).all()
    assert weights @ index.num_scored == pytest.approx(expected.get(aggregation, 1.0))


@given(
    steps=st.lists(
        st.tuples(st.integers(1, 50), st.integers(0, 5), st.integers(0, 2)), min_size=1, max_size=40
    ),
    batch_size=st.integers(1, 45),
    aggregation=st.sampled_from(["trajectory-mean", "group-mean"]),
    epochs=st.integers(1, 2),
)
def test_over_an_epoch_of_any_batches_each_owner_has_the_same_weight(
    steps: list[tuple[int, int, int]], batch_size: int, aggregation: Aggregation, epochs: int
):
    responses, trajectory, group = (list(column) for column in zip(*steps, strict=True))
    index = index_of(responses, trajectory=trajectory, group=group)
    plan = make_plan(
        index, seed=0, epochs=epochs, batch_size=batch_size, max_tokens=51, aggregation=aggregation
    )
    num_updates = len(plan.updates) // epochs
    for epoch in range(epochs):
        weight = np.zeros(len(index))
        for update in range(epoch * num_updates, (epoch + 1) * num_updates):
            for micro in plan.micro_batches(update, 1)[0]:
                weight[micro.steps] += micro.weight
        owner = index.trajectory if aggregation == "trajectory-mean" else index.group
        owners, code = np.unique(owner, return_inverse=True)
        totals = np.bincount(code, weight * index.num_scored)
        assert totals == pytest.approx(np.full(len(owners), num_updates / len(owners)))
