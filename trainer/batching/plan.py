"""Plan which steps go into which optimizer step and micro-batch, before the first forward pass.

A plan depends on the data and the configuration, never on the number of processes. So the state of
the input is one integer, the number of finished optimizer steps. The plan's hash tells whether that
integer still has the same meaning.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from graphcredit.trainer.batching.aggregation import step_weights
from graphcredit.trainer.batching.bin_packing import cost, cut, pack, spread
from graphcredit.trainer.data.prefix_order import PrefixOrder, Runs, equal_order
from graphcredit.trainer.data.ragged import Floats, Ints
from graphcredit.trainer.data.step_index import StepIndex, windows
from graphcredit.trainer.options import Aggregation


@dataclass(frozen=True, kw_only=True, slots=True)
class MicroBatch:
    """Steps that go through the model together."""

    steps: Ints
    """[k] positions in the index."""
    weight: Floats
    """[k] weight of every scored token of each step. A dummy has only zeros; it keeps a process in
    step with the others."""
    shares_prefixes: bool = False
    """Whether tokens that its steps begin with in common go through the model once: so the plan has
    counted them."""

    @property
    def is_dummy(self) -> bool:
        """Whether nothing is learnt from it."""
        return not self.weight.any()


class MicroBatchSize(NamedTuple):
    """What a pass over a micro-batch takes."""

    num_tokens: int
    """Tokens that go through the model."""
    num_responses: int
    """Response tokens that the head scores."""
    num_keys: int
    """Tokens that runs attend to, added up; as many as tokens where no prefix is shared."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanStatistics:
    """Statistics of the packing of one optimizer step."""

    num_micro_batches: int
    """Dummies not counted."""
    num_dummies: int
    num_tokens: int
    """Tokens that go through the model: those of equal steps once, dummies not counted. Shared
    prefixes once in a micro-batch."""
    fill: float
    """Share of the micro-batches' token cap that is used."""
    imbalance: float
    """By how much the cost of the slowest rank exceeds the mean, as a share of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingPlan:
    """The optimizer steps of a training."""

    index: StepIndex
    prefixes: PrefixOrder
    """The common prefixes of steps, which go through the model once."""
    shares_prefixes: bool
    """Whether they are more than whole equal steps."""
    updates: tuple[Ints, ...]
    """The steps of each optimizer step, ascending, epoch after epoch."""
    bins: tuple[tuple[Ints, ...], ...]
    """For each optimizer step, which of its steps are in each micro-batch, as positions in
    `updates`: the same for any number of ranks."""
    epochs: int
    """How often each step is used."""
    updates_per_epoch: int
    """Optimizer steps in which each step of the index is used once."""
    max_tokens: int
    """Cap of a micro-batch."""
    aggregation: Aggregation
    hash: str
    """Hash of everything that determines the result."""

    def micro_batches(self, update: int, world_size: int) -> list[list[MicroBatch]]:
        """Return the micro-batches of each rank in one optimizer step, the same number for all.

        Equal steps are in one micro-batch, because they go through the model only once.

        The micro-batches are the same for any world size; only their distribution differs.
        """
        steps, bins = self.updates[update], self.bins[update]
        weight = step_weights(
            self.index, steps, self.aggregation, num_updates=self.updates_per_epoch
        )
        ranks = spread(self._costs(update), world_size)
        shortest = self.index.length[steps].argmin()

        def micro(steps: Ints, weight: Floats) -> MicroBatch:
            return MicroBatch(steps=steps, weight=weight, shares_prefixes=self.shares_prefixes)

        dummy = micro(steps[[shortest]], np.zeros(1))
        return [
            [
                *(micro(steps[bins[n]], weight[bins[n]]) for n in numbers),
                *[dummy] * (len(max(ranks, key=len)) - len(numbers)),
            ]
            for numbers in ranks
        ]

    def statistics(self, update: int, world_size: int) -> PlanStatistics:
        """Return the packing statistics of an optimizer step."""
        costs = self._costs(update)
        ranks = spread(costs, world_size)
        loads = np.array([sum(costs[number] for number in numbers) for numbers in ranks])
        num_tokens = sum(int(runs.new.sum()) for runs in self._runs(update))
        return PlanStatistics(
            num_micro_batches=len(costs),
            num_dummies=world_size * len(max(ranks, key=len)) - len(costs),
            num_tokens=num_tokens,
            fill=num_tokens / (len(costs) * self.max_tokens),
            imbalance=float(loads.max() / loads.mean() - 1),
        )

    def num_tokens(self) -> int:
        """Return the tokens that go through the model in all optimizer steps."""
        return sum(
            int(runs.new.sum())
            for number in range(len(self.updates))
            for runs in self._runs(number)
        )

    def sizes(self) -> set[MicroBatchSize]:
        """Return the size of every micro-batch that is trained on; equal ones once."""
        responses = self.index.response_length
        return {
            MicroBatchSize(
                num_tokens=int(runs.new.sum()),
                num_responses=int(responses[self.updates[update][items]].sum()),
                num_keys=int(runs.length[runs.new > 0].sum()),
            )
            for update in range(len(self.updates))
            for items, runs in zip(self.bins[update], self._runs(update), strict=True)
        }

    def _runs(self, update: int) -> list[Runs]:
        """Return the runs of tokens in each micro-batch of an optimizer step."""
        steps = self.updates[update]
        return [self.prefixes.runs(steps[items]) for items in self.bins[update]]

    def _costs(self, update: int) -> list[float]:
        """Return the cost of each micro-batch of an optimizer step."""
        return [cost(runs.new, runs.length) for runs in self._runs(update)]


def _pack(prefixes: PrefixOrder, steps: Ints, max_tokens: int) -> tuple[Ints, ...]:
    """Return which of some steps are in each micro-batch, ascending."""
    runs = prefixes.runs(steps)
    pieces = cut(runs.length, runs.shared, max_tokens)
    sizes = [int(runs.new[p].sum() + runs.shared[p.start]) for p in map(_as_slice, pieces)]
    return tuple(
        np.sort(np.concatenate([runs.order[_as_slice(pieces[item])] for item in items]))
        for items in pack(np.array(sizes), max_tokens)
    )


def _as_slice(piece: range) -> slice:
    return slice(piece.start, piece.stop)


def make_plan(
    index: StepIndex,
    *,
    seed: int,
    epochs: int,
    batch_size: int,
    max_tokens: int,
    aggregation: Aggregation,
    prefixes: PrefixOrder | None = None,
    whole_trajectories: bool = False,
    max_steps: int | None = None,
) -> TrainingPlan:
    """Cut each epoch into optimizer steps of nearly equal size, each step of the index in one.

    Args:
        index: The n steps.
        seed: Orders them, differently in each epoch.
        epochs: How often each step is used.
        batch_size: An epoch has ceil(n / batch_size) optimizer steps.
        max_tokens: Cap of a micro-batch; no step may be longer.
        aggregation: What has equal weight.
        prefixes: What steps have in common at their beginning, to go through the model once; by
            default only whole equal steps do.
        whole_trajectories: Whether the steps of a trajectory are in one optimizer step; these are
            then of about `batch_size` steps.
        max_steps: Most optimizer steps of all epochs; those beyond are left out.
    """
    num_updates = -(-len(index) // batch_size)
    orders = [_order(index, seed, epoch) for epoch in range(epochs)]
    updates = tuple(
        np.sort(steps)
        for order in orders
        for steps in (
            _whole_trajectories(index, order, num_updates)
            if whole_trajectories
            else np.array_split(order, num_updates)
        )
    )
    updates_per_epoch = len(updates) // epochs
    updates = updates[:max_steps]
    shares_prefixes = prefixes is not None
    options = [seed, epochs, batch_size, max_tokens, aggregation]
    options += ["whole rollouts"] if whole_trajectories else []
    options += ["shared prefixes"] if shares_prefixes else []
    prefixes = equal_order(index) if prefixes is None else prefixes
    return TrainingPlan(
        index=index,
        prefixes=prefixes,
        shares_prefixes=shares_prefixes,
        updates=updates,
        bins=tuple(_pack(prefixes, steps, max_tokens) for steps in updates),
        epochs=epochs,
        updates_per_epoch=updates_per_epoch,
        max_tokens=max_tokens,
        aggregation=aggregation,
        hash=_hash(index, updates, options),
    )


def _order(index: StepIndex, seed: int, epoch: int) -> Ints:
    random = np.random.default_rng([seed, epoch])
    window = windows(index.length)
    rank_of_window = random.permutation(int(window[-1]) + 1)
    order = random.permutation(len(index))
    return order[np.argsort(rank_of_window[window[order]], kind="stable")]


def _whole_trajectories(index: StepIndex, order: Ints, num_updates: int) -> list[Ints]:
    """Cut an order of steps, in which those of a trajectory move up to its first one.

    There are as many pieces as asked for, or as there are trajectories, if these are fewer. Each
    ends with the trajectory in which it would have its share of the steps.
    """
    _, first, which = np.unique(index.trajectory[order], return_index=True, return_inverse=True)
    order = order[np.argsort(first[which], kind="stable")]
    ends = np.flatnonzero(np.diff(index.trajectory[order])) + 1
    count = min(num_updates, len(ends) + 1) - 1
    number = np.arange(count)
    share = (number + 1) * len(order) / (count + 1)
    # The ends of two pieces differ, and as many ends are left as there are pieces to come.
    chosen = np.maximum.accumulate(np.searchsorted(ends, share) - number) + number
    return np.split(order, ends[np.minimum(chosen, len(ends) - count + number)])


def _hash(index: StepIndex, updates: tuple[Ints, ...], options: list[int | str]) -> str:
    # The order is hashed too: numpy does not promise the same one from the same seed for ever.
    digest = hashlib.sha256(json.dumps([index.manifest, *options]).encode())
    kept: list[Ints | Floats] = [
        index.shard,
        index.row,
        index.prompt_length,
        index.response_length,
        index.num_scored,
        index.advantage,
        index.trajectory,
        index.group,
        index.sequence,
    ]
    for array in [*kept, np.array([len(u) for u in updates]), *updates]:
        digest.update(array.tobytes())
    return digest.hexdigest()
