"""Packed batches of pairs of token lists."""

from collections.abc import Sequence

import numpy as np

from graphcredit.trainer.batching.packed_batch import PackedBatch, Sample
from graphcredit.trainer.batching.packed_batch import pack_samples as pack

Pair = tuple[Sequence[int], Sequence[int]]
"""Prompt and response."""


def as_sample(pair: Pair, *, temperature: float = 1.0) -> Sample:
    """Return a step that was sampled with log-probability -1 a token."""
    prompt, response = (np.array(ids, np.int32) for ids in pair)
    return Sample(prompt, response, -np.ones(len(response), np.float32), temperature)


def pack_samples(
    pairs: Sequence[Pair], *, temperature: float = 1.0, weight: float = 1.0
) -> PackedBatch:
    """Return steps one after the other, each response token with the same weight."""
    ones = np.ones(len(pairs))
    samples = [as_sample(pair, temperature=temperature) for pair in pairs]
    return pack(samples, advantage=ones, weight=weight * ones, steps=np.arange(len(pairs)))


def random_samples(
    num_samples: int, *, seed: int, num_tokens: int = 90, longest: int = 30
) -> list[Pair]:
    """Return prompts and responses of random lengths and ids."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest, (num_samples, 2)).tolist()
    return [tuple(rng.integers(num_tokens, size=n).tolist() for n in pair) for pair in lengths]
