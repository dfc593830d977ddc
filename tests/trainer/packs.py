"""Packed batches built by hand."""

from collections.abc import Sequence

import numpy as np

from graphcredit.trainer.batching.packed_batch import PackedBatch

Sample = tuple[Sequence[int], Sequence[int]]
"""Prompt and response."""


def pack_samples(
    samples: Sequence[Sample],
    *,
    temperature: float = 1.0,
    weight: float = 1.0,
    behaviour: Sequence[float] | None = None,
) -> PackedBatch:
    """Return samples one after the other, each response token with the same weight."""
    lengths = [len(prompt) + len(response) for prompt, response in samples]
    starts = np.cumsum([0, *lengths])
    counts = [len(response) for _, response in samples]
    num_responses = sum(counts)
    predictors = [
        start + len(prompt) - 1 + np.arange(len(response))
        for start, (prompt, response) in zip(starts[:-1], samples, strict=True)
    ]
    ones = np.ones(num_responses, np.float32)
    return PackedBatch(
        input_ids=np.concatenate([[*prompt, *response] for prompt, response in samples]),
        position_ids=np.concatenate([np.arange(length) for length in lengths]),
        cu_seqlens=starts.astype(np.int32),
        max_length=max(lengths),
        predictor=np.concatenate(predictors),
        token_ids=np.concatenate([response for _, response in samples]).astype(np.int64),
        behaviour_logprobs=-ones if behaviour is None else np.array(behaviour, np.float32),
        is_scored=np.ones(num_responses, bool),
        temperature=ones * np.float32(temperature),
        advantage=ones,
        weight=ones * np.float32(weight),
        segment=np.repeat(np.arange(len(samples)), counts),
        steps=np.arange(len(samples)),
        copies=np.ones(int(starts[-1]), np.int64),
    )


def random_samples(
    num_samples: int, *, seed: int, num_tokens: int = 90, longest: int = 30
) -> list[Sample]:
    """Return prompts and responses of random lengths and ids."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest, (num_samples, 2)).tolist()
    return [tuple(rng.integers(num_tokens, size=n).tolist() for n in pair) for pair in lengths]
