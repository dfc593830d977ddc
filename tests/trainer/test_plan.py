"""Plans: every step once per epoch, within the cap, whatever the number of processes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcredit.trainer.batching.bin_packing import ATTENTION_TOKENS, cost, pack, spread
from graphcredit.trainer.batching.plan import TrainingPlan, make_plan
from graphcredit.trainer.data import step_index as index_module
from graphcredit.trainer.data.step_index import StepIndex
from tests.examples import examples
from tests.trainer.indexes import index_of

CAP = 20

lengths = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 8)), min_size=1, max_size=40)


def _plan(index: StepIndex, **changes: Any) -> TrainingPlan:
    options: dict[str, Any] = {
        "seed": 0,
        "epochs": 1,
        "batch_size": 8,
        "max_tokens": CAP,
        "aggregation": "token-mean",
    }
    return make_plan(index, **options | changes)


def _index(steps: list[tuple[int, int]]) -> StepIndex:
    prompts, responses = (list(column) for column in zip(*steps, strict=True))
    return index_of(responses, prompts=prompts)


@given(steps=lengths, batch_size=st.integers(1, 50), epochs=st.integers(1, 3))
def test_each_step_is_in_one_update_of_each_epoch(
    steps: list[tuple[int, int]], batch_size: int, epochs: int
):
    plan = _plan(_index(steps), batch_size=batch_size, epochs=epochs)
    per_epoch = -(-len(steps) // batch_size)
    assert len(plan.updates) == epochs * per_epoch
    for epoch in range(epochs):
        updates = plan.updates[epoch * per_epoch : (epoch + 1) * per_epoch]
        assert sorted(np.concatenate(updates).tolist()) == list(range(len(steps)))
        sizes = [len(update) for update in updates]
        assert max(sizes) <= batch_size
        assert max(sizes) - min(sizes) <= 1


@given(steps=lengths, world_size=st.integers(1, 5))
def test_micro_batches_hold_each_step_of_the_update_once_and_keep_to_the_cap(
    steps: list[tuple[int, int]], world_size: int
):
    index = _index(steps)
    plan = _plan(index)
    for update, members in enumerate(plan.updates):
        ranks = plan.micro_batches(update, world_size)
        assert len(ranks) == world_size
        assert len({len(rank) for rank in ranks}) == 1
        everything = [micro for rank in ranks for micro in rank]
        assert all(index.length[micro.steps].sum() <= CAP for micro in everything)
        real = [micro for micro in everything if not micro.is_dummy]
        assert sorted(np.concatenate([m.steps for m in real]).tolist()) == members.tolist()
        assert sum(m.weight @ index.num_scored[m.steps] for m in real) == pytest.approx(1)
        assert len(everything) - len(real) < world_size


@given(steps=lengths, world_size=st.integers(2, 5))
def test_the_number_of_processes_changes_neither_updates_nor_micro_batches(
    steps: list[tuple[int, int]], world_size: int
):
    plan = _plan(_index(steps))

    def micro_batches(update: int, ranks: int) -> set[tuple[int, ...]]:
        of_ranks = plan.micro_batches(update, ranks)
        return {tuple(m.steps.tolist()) for rank in of_ranks for m in rank if not m.is_dummy}

    for update in range(len(plan.updates)):
        assert micro_batches(update, 1) == micro_batches(update, world_size)


def test_a_process_without_work_gets_the_shortest_step_without_weight():
    index = index_of([3, 1, 5])
    ((real,), (dummy,)) = _plan(index).micro_batches(0, 2)
    assert (real.steps.tolist(), dummy.steps.tolist()) == ([0, 1, 2], [1])
    assert dummy.weight.tolist() == [0]
    assert not real.is_dummy
    assert dummy.is_dummy


def test_the_order_differs_between_seeds_and_epochs():
    index = index_of([1] * 64)
    plan = _plan(index, epochs=2, batch_size=32)
    other = _plan(index, epochs=2, batch_size=32, seed=1)
    orders = {tuple(p.updates[n].tolist()) for p in (plan, other) for n in (0, 2)}
    assert len(orders) == 4


def test_the_hash_is_the_same_for_the_same_input_only():
    index = index_of([2, 2, 3, 4])
    same = _plan(index).hash
    assert _plan(index_of([2, 2, 3, 4])).hash == same
    others = [
        _plan(index, seed=1),
        _plan(index, epochs=2),
        _plan(index, batch_size=2),
        _plan(index, max_tokens=CAP + 1),
        _plan(index, aggregation="seq-mean"),
        _plan(index_of([2, 2, 3, 4], manifest="other")),
        _plan(index_of([2, 2, 3, 4], masked=[0, 0, 0, 1])),
        _plan(index_of([2, 2, 3, 4], trajectory=[0, 0, 0, 1])),
    ]
    assert len({same, *(plan.hash for plan in others)}) == 1 + len(others)


def test_steps_are_shuffled_within_windows_so_that_a_large_iteration_is_read_in_parts(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(index_module, "WINDOW_TOKENS", 100)
    index = index_of([4] * 80)  # 5 tokens each, 20 steps of a window
    plan = _plan(index, batch_size=20)
    windows = [range(start, start + 20) for start in (0, 20, 40, 60)]
    assert sorted(update.tolist() for update in plan.updates) == [list(w) for w in windows]
    orders = {tuple(u[0] for u in _plan(index, batch_size=20, seed=s).updates) for s in range(4)}
    assert len(orders) > 1


def test_statistics_count_real_work_only():
    # Bins of 20: steps of 11, 9 and 5 tokens make [11 + 9] and [5].
    plan = _plan(index_of([10, 8, 4]))
    one = plan.statistics(0, 1)
    assert (one.num_micro_batches, one.num_dummies, one.num_tokens) == (2, 0, 25)
    assert one.fill == pytest.approx(25 / 40)
    assert one.imbalance == pytest.approx(0)
    three = plan.statistics(0, 3)
    assert (three.num_micro_batches, three.num_dummies) == (2, 1)
    # Attention is nothing at these lengths: costs of about 20, 5 and 0, their mean 25 / 3.
    assert three.imbalance == pytest.approx(20 / (25 / 3) - 1, rel=1e-3)


def test_best_fit_puts_each_item_where_least_room_is_left():
    # 7 and 6 open bins of 10; 4 fits the second only; 3 fills the first.
    assert [b.tolist() for b in pack(np.array([3, 6, 4, 7]), 10)] == [[0, 3], [1, 2]]


@settings(max_examples=examples(50))
@given(sizes=st.lists(st.integers(1, 30), max_size=60), capacity=st.integers(30, 60))
def test_packing_needs_no_two_bins_that_fit_into_one(sizes: list[int], capacity: int):
    bins = pack(np.array(sizes, np.int64), capacity)
    filled = sorted(sum(sizes[i] for i in items) for items in bins)
    assert sorted(i for items in bins for i in items.tolist()) == list(range(len(sizes)))
    assert all(size <= capacity for size in filled)
    assert len(filled) < 2 or filled[0] + filled[1] > capacity


def test_a_long_segment_costs_more_than_short_ones_of_the_same_length_together():
    one, halves = np.array([ATTENTION_TOKENS]), np.full(2, ATTENTION_TOKENS // 2)
    assert cost(one, one) == 2 * ATTENTION_TOKENS
    assert cost(halves, halves) == 1.5 * ATTENTION_TOKENS
    # A sequence in two runs costs what it costs in one.
    assert cost(halves, np.array([ATTENTION_TOKENS // 2, ATTENTION_TOKENS])) == cost(one, one)


def test_ranks_get_equal_counts_and_about_equal_cost():
    # 9 and 8 go to a rank each, 3 to the cheaper, 2 to the other.
    assert spread([2, 9, 3, 8], 2) == [[1, 0], [3, 2]]
    # Two of 1 would balance 9, but a rank has at most 2 of 4 items.
    assert [len(rank) for rank in spread([9, 1, 1, 1], 2)] == [2, 2]
    assert [len(rank) for rank in spread([5], 3)] == [1, 0, 0]
