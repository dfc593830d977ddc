"""Compare logged log-probabilities with the model's own, before the first update."""

from dataclasses import dataclass

import numpy as np

from graphcredit.store.errors import InputError
from graphcredit.trainer.batching.bin_packing import pack
from graphcredit.trainer.batching.plan import MicroBatch
from graphcredit.trainer.batching.reader import BatchReader
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.data.ragged import Floats, Ints
from graphcredit.trainer.data.step_index import StepIndex
from graphcredit.trainer.engine.engine import TrainingEngine

_SAMPLE = 64
"""Steps whose log-probabilities are recomputed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SamplerAgreement:
    """Recomputed minus logged log-probabilities over a sample of steps, in nats."""

    num_steps: int
    num_tokens: int
    shift: float
    """Mean of the gap with its sign: above 0, this model finds the tokens likelier."""
    mean: float
    """Mean of its size."""
    largest: float
    worst: str
    """File and row of the step with the largest mean gap."""

    def __str__(self) -> str:
        return (
            f"over {self.num_tokens} tokens of {self.num_steps} steps, recomputed and logged "
            f"log-probabilities differ by {self.mean:.3g} nats in the mean (largest "
            f"{self.largest:.3g}, mean with sign {self.shift:+.3g}); the worst step is {self.worst}"
        )


def check_agreement(
    engine: TrainingEngine, reader: BatchReader, index: StepIndex, config: TrainConfig
) -> list[str]:
    """Recompute the log-probabilities of a sample of steps and compare them with the logged ones.

    Every process recomputes the whole sample. The sample has no stale steps, because their
    log-probabilities are expected to differ.

    Returns:
        Notices: empty, or why the comparison was skipped.

    Raises:
        InputError: The mean gap is beyond the tolerance.
    """
    fresh = np.flatnonzero(index.staleness <= 0)
    if not len(fresh):
        return [
            "all steps are of older weights than this model: logged log-probabilities were not "
            "compared with it"
        ]
    size = min(_SAMPLE, len(fresh))
    steps = np.random.default_rng(config.seed).choice(fresh, size, replace=False)
    agreement = measure_agreement(engine, reader, index, np.sort(steps), config.max_tokens)
    if agreement.mean <= config.mismatch_tolerance:
        return []
    raise InputError(
        f"{agreement}. The mean must be at most {config.mismatch_tolerance:g}. Likely another "
        "model or tokenizer sampled these steps, or other weights of this one; or the "
        "log-probabilities were logged before temperature or top-p were applied. Train the model "
        "that sampled them, or accept the gap with a greater --mismatch-tolerance"
    )


def measure_agreement(
    engine: TrainingEngine, reader: BatchReader, index: StepIndex, steps: Ints, max_tokens: int
) -> SamplerAgreement:
    """Compare the logged log-probabilities of some steps with those of an engine's weights."""
    gaps: list[Floats] = []
    owners: list[Ints] = []
    for items in pack(index.length[steps], max_tokens):
        micro = MicroBatch(steps=steps[items], weight=np.zeros(len(items)))
        batch = reader.read(micro)
        with engine.frozen():
            logprob = engine.score(batch).logprob.cpu().numpy().astype(np.float64)
        gaps.append((logprob - batch.behaviour_logprobs)[batch.is_scored])
        owners.append(batch.steps[batch.segment[batch.is_scored]])
    return _summary(np.concatenate(gaps), np.concatenate(owners), index)


def _summary(gap: Floats, owner: Ints, index: StepIndex) -> SamplerAgreement:
    size = np.abs(gap)
    steps, number = np.unique(owner, return_inverse=True)
    worst = steps[np.argmax(np.bincount(number, size) / np.bincount(number))]
    return SamplerAgreement(
        num_steps=len(steps),
        num_tokens=len(size),
        shift=float(gap.mean()),
        mean=float(size.mean()),
        largest=float(size.max()),
        worst=index.where(worst),
    )
