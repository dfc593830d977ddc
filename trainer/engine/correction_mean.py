"""Importance weights of mean 1 over an optimizer step, whatever its packing and its processes."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from graphcredit.trainer.batching.packed_batch import PackedBatch
from graphcredit.trainer.data.ragged import Singles
from graphcredit.trainer.engine.engine import TrainingEngine
from graphcredit.trainer.engine.frozen_logprobs import FrozenLogprobs
from graphcredit.trainer.loss.importance import Correction, sum_weights
from graphcredit.trainer.loss.inputs import TokenInputs

_LEAST = 1e-8
"""A mean below this is 0 but for rounding."""


def normalised(
    correction: Correction,
    batches: Sequence[PackedBatch],
    old: FrozenLogprobs,
    engine: TrainingEngine,
) -> Correction:
    """Return a correction whose weights have the mean 1; as it is if all of them are 0.

    The mean is that of tokens, or of responses where a response has one weight. It takes no pass
    through the model: the log-probabilities of both policies are known. All processes call this.

    Args:
        correction: The rule.
        batches: This process' micro-batches of the optimizer step.
        old: The policy that the weights lead to.
        engine: Adds up the micro-batches of all processes.
    """
    sums = [sum_weights(_tokens(batch, old.of_batch(batch)), correction) for batch in batches]
    mine = np.array([sum(each) for each in zip(*sums, strict=True)], np.float64)
    total, count = engine.sum_over_batches(mine)
    mean = float(total) / max(float(count), 1.0)
    return replace(correction, mean=mean) if mean > _LEAST else correction


def _tokens(batch: PackedBatch, old: Singles) -> TokenInputs:
    """Return the scored tokens of a micro-batch, in the memory of the host, as of the start."""
    start = torch.from_numpy(old)
    return TokenInputs(
        logprob=start,
        old=start,
        behaviour=torch.from_numpy(batch.behaviour_logprobs),
        start=start,
        reference=None,
        advantage=torch.from_numpy(batch.advantage),
        weight=torch.from_numpy(batch.weight),
        is_scored=torch.from_numpy(batch.is_scored),
        segment=torch.from_numpy(batch.segment),
        num_segments=len(batch.steps),
        entropy=None,
    ).scored()
