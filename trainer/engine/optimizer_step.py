"""One optimizer step: forward and backward through its micro-batches, the update, the metrics."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from graphcredit.trainer.batching.packed_batch import PackedBatch
from graphcredit.trainer.batching.plan import MicroBatch, TrainingPlan
from graphcredit.trainer.batching.reader import BatchReader
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine.engine import TrainingEngine
from graphcredit.trainer.engine.frozen_logprobs import FrozenLogprobs
from graphcredit.trainer.loss.inputs import TokenInputs
from graphcredit.trainer.loss.policy_loss import PolicyLoss, averages, policy_loss
from graphcredit.trainer.loss.registry import Objective
from graphcredit.trainer.model.flops import peak_flops, training_flops
from graphcredit.trainer.options import OptimizerOptions

Metrics = dict[str, float | int | None]

_OF_RATIOS = {"ratio_mean", "ratio_max", "approx_kl"}


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The policy at the start of a training of one update.

    It is the policy that is trained, so its log-probabilities are those of the forward pass.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class FrozenPolicies:
    """Log-probabilities of the policies that do not change during training."""

    old: FrozenLogprobs | Unchanged | None
    """Denominator of the ratios; None to use the sampler's own log-probabilities."""
    reference: FrozenLogprobs | Unchanged | None
    """Reference of the KL divergence; None without one."""


class Updater:
    """Makes the optimizer steps of a plan, one after the other."""

    def __init__(
        self,
        config: TrainConfig,
        engine: TrainingEngine,
        plan: TrainingPlan,
        reader: BatchReader,
        objective: Objective,
        policies: FrozenPolicies,
    ) -> None:
        """Make nothing yet.

        Args:
            config: The options of the loss.
            engine: The policy.
            plan: The optimizer steps.
            reader: Reads their micro-batches.
            objective: The loss of a token.
            policies: What the loss compares with.
        """
        self._config, self._engine, self._plan, self._reader = config, engine, plan, reader
        self._objective, self._policies = objective, policies
        self._peak = peak_flops(engine.device_name)

    def run(
        self, first: int, on_part: Callable[[float], None] = lambda done: None
    ) -> Iterator[tuple[int, Metrics]]:
        """Make all optimizer steps from `first` on, and yield each with its metrics.

        The micro-batches of later steps are read while earlier ones are computed.

        Args:
            first: 0-based number of the first step to make.
            on_part: Called with the fractional number of steps done, after each micro-batch but the
                last of a step.

        Raises:
            TrainingError: A gradient is not finite.
        """
        numbers = range(first, len(self._plan.updates))
        batches = self._reader.ahead(micro for n in numbers for micro in self._mine(n))
        for number in numbers:
            started = time.perf_counter()
            rate = learning_rate(self._config, number, len(self._plan.updates))
            count = len(self._mine(number))
            mine = _counted(islice(batches, count), number, count, on_part)
            seen, flops = self._gradient(mine, is_first=number == 0)
            norm = self._engine.update(rate)
            seconds = time.perf_counter() - started
            metrics: Metrics = {
                "epoch": number // self._plan.updates_per_epoch,
                **_of_plan(self._plan, number),
                **seen,
                "grad_norm": norm,
                "learning_rate": rate,
                "seconds": seconds,
                "peak_memory": self._engine.peak_memory(),
            }
            metrics["tokens_per_second"] = (metrics["num_tokens"] or 0) / seconds
            if self._peak:
                metrics["mfu"] = flops / (seconds * self._peak * self._engine.world_size)
            yield number, {name: _finite(value) for name, value in metrics.items()}

    def _mine(self, number: int) -> list[MicroBatch]:
        return self._plan.micro_batches(number, self._engine.world_size)[self._engine.rank]

    def _gradient(
        self, batches: Iterable[PackedBatch], *, is_first: bool
    ) -> tuple[dict[str, float], float]:
        """Go forward and backward through this rank's micro-batches.

        Returns:
            The metrics and the floating-point operations, over all ranks.
        """
        losses: list[PolicyLoss] = []
        flops = 0.0
        for batch in batches:
            losses.append(self._loss(batch, is_first=is_first))
            self._engine.backward(losses[-1].loss)
            if batch.weight.any():
                flops += training_flops(self._engine.shape, batch)
        names = list(losses[0].sums)
        parts = [_total(loss.sums, names) for loss in losses]
        *sums, all_flops = self._engine.all_reduce_sum(np.append(np.sum(parts, axis=0), flops))
        largest = list(losses[0].maxima)
        tops = np.max([_total(loss.maxima, largest) for loss in losses], axis=0)
        maxima = self._engine.all_reduce_max(tops)
        metrics = {
            **averages(dict(zip(names, sums, strict=True))),
            **dict(zip(largest, maxima.tolist(), strict=True)),
        }
        if not self._plan.index.source.has_logprobs and self._policies.old is None:
            # Each ratio is 1 because there is nothing to take it to.
            metrics = {name: metrics[name] for name in metrics.keys() - _OF_RATIOS}
        return metrics, float(all_flops)

    def _loss(self, batch: PackedBatch, *, is_first: bool) -> PolicyLoss:
        policies = self._policies
        scored = self._engine.score(batch, want_entropy=self._config.entropy_coefficient > 0)
        put = self._engine.put
        present = scored.logprob.detach()
        old = self._under(policies.old, batch, present)
        if self._plan.index.source.has_logprobs:
            behaviour = put(batch.behaviour_logprobs)
            # Before the first update the weights are those of the start.
            start = present if old is None and is_first else old
        else:
            behaviour, start = present if old is None else old, None
        reference = self._under(policies.reference, batch, present)
        return policy_loss(
            TokenInputs(
                logprob=scored.logprob,
                old=behaviour if old is None else old,
                behaviour=behaviour,
                start=start,
                reference=reference,
                advantage=put(batch.advantage),
                weight=put(batch.weight),
                is_scored=put(batch.is_scored),
                segment=put(batch.segment),
                num_segments=len(batch.steps),
                entropy=scored.entropy,
            ),
            self._objective,
            self._config,
        )

    def _under(
        self, policy: FrozenLogprobs | Unchanged | None, batch: PackedBatch, present: Tensor
    ) -> Tensor | None:
        """Return [R] log-probabilities under a frozen policy; `present` are the current ones."""
        if isinstance(policy, Unchanged):
            return present
        return policy and self._engine.put(policy.of_batch(batch))


def learning_rate(options: OptimizerOptions, update: int, num_updates: int) -> float:
    """Return the learning rate of an update: a linear warm-up, then the schedule to the minimum."""
    if update < options.warmup:
        return options.learning_rate * (update + 1) / options.warmup
    done = (update - options.warmup) / max(num_updates - options.warmup, 1)
    factor = {"constant": 1.0, "linear": 1 - done, "cosine": (1 + math.cos(math.pi * done)) / 2}[
        options.schedule
    ]
    least = options.min_learning_rate
    return least + (options.learning_rate - least) * factor


def _counted(
    batches: Iterable[PackedBatch], number: int, count: int, on_part: Callable[[float], None]
) -> Iterator[PackedBatch]:
    """Yield the micro-batches of a step; report each as done when the next one is requested."""
    for position, batch in enumerate(batches):
        if position:
            on_part(number + position / count)
        yield batch


def _finite(value: float | None) -> float | None:
    """Return a finite number, or None: JSON has no NaN."""
    return value if value is not None and math.isfinite(value) else None


def _of_plan(plan: TrainingPlan, number: int) -> Metrics:
    """Return the metrics of an update that follow from the plan."""
    steps = plan.updates[number]
    advantage = plan.index.advantage[steps]
    age = plan.index.staleness[steps]
    return {
        "advantage_mean": float(advantage.mean()),
        "advantage_std": float(advantage.std()),
        "advantage_zero": float((advantage == 0).mean()),
        "staleness_mean": float(age.mean()) if (age >= 0).all() else None,
        "num_steps": len(steps),
        "num_tokens": plan.statistics(number, 1).num_tokens,
    }


def _total(values: Mapping[str, Tensor], names: list[str]) -> np.ndarray:
    return torch.stack([values[name] for name in names]).cpu().numpy()
