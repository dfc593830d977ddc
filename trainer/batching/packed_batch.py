"""Steps packed into one batch without padding, equal tokens once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphcredit.trainer.data.prefix_order import sort_by_prefix
from graphcredit.trainer.data.ragged import Bools, Floats, Ints, Singles


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedKeys:
    """The tokens that each run attends to, where runs share their beginnings."""

    positions: Ints
    """[K] positions in [0, T): for each run the whole sequence that it ends, from token 0 on."""
    cu_seqlens: NDArray[np.int32]
    """[runs + 1] where each run's part of `positions` starts, and K."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pictures:
    """N images as a vision tower takes them."""

    patches: Singles
    """[P, D] the pixels of each patch of each image."""
    grids: Ints
    """[N, 3] frames, rows and columns of patches of each image."""
    places: Ints
    """[V] position of the token that each vector stands for, which the tower makes of them; the
    vectors of a blank image stand for none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PackedBatch:
    """R response tokens of S steps, and the T tokens that predict them, one run after another.

    A run is a sequence of prompt and response. Steps with the same prompt and response share it: it
    goes through the model once. Where prefixes are shared too, a run is the rest of a sequence,
    without the tokens that it has in common with an earlier one. Each step has its own response
    tokens, advantage and weight in any case.
    """

    input_ids: Ints
    """[T] tokens of each run."""
    position_ids: Ints
    """[T] position within the sequence; [3, T] if there are pictures: in time, height and width."""
    cu_seqlens: NDArray[np.int32]
    """[runs + 1] where each run starts, and T."""
    max_length: int
    """Tokens of the longest sequence."""
    predictor: Ints
    """[R] position in [0, T) whose hidden state predicts the token: the one before it."""
    token_ids: Ints
    """[R] response tokens."""
    behaviour_logprobs: Singles
    """[R] log-probability under the policy that sampled the token; 0 if it is not finite."""
    is_scored: Bools
    """[R] the log-probability is finite, so that the token enters the loss."""
    temperature: Singles
    """[R] sampling temperature; 1 if it was not logged."""
    advantage: Singles
    """[R] advantage of the step."""
    weight: Singles
    """[R] weight in the optimizer step; 0 for tokens that are not scored, and in a dummy."""
    segment: Ints
    """[R] which of the S steps."""
    steps: Ints
    """[S] positions in the index."""
    keys: SharedKeys | None = None
    """What runs attend to; None where each attends to itself only."""
    pictures: Pictures | None = None
    """Images of the sequences, in the order of their tokens. One that no token stands for is there
    to take every pass through the vision tower. None without images in the whole log."""


class Sample(NamedTuple):
    """One step."""

    prompt: NDArray[np.int32]
    """Token ids."""
    response: NDArray[np.int32]
    """Token ids."""
    logprob: Singles
    """Log-probability of each response token; one that is not finite does not enter the loss."""
    temperature: float
    """Of sampling."""
    images: tuple[bytes, ...] = ()
    """Files of the prompt's images."""
    pictures: Pictures | None = None
    """The same as a vision tower takes them, where they were read."""
    positions: Ints | None = None
    """[3, tokens] positions of the tokens, where images were read."""

    @property
    def tokens(self) -> NDArray[np.int32]:
        """Prompt and response."""
        return np.concatenate([self.prompt, self.response])


class _Layout(NamedTuple):
    """Where the tokens of the samples are."""

    input_ids: Ints
    position_ids: Ints
    cu_seqlens: Ints
    predictor: Ints
    keys: SharedKeys | None
    pictures: tuple[Pictures, ...] = ()


def pack_samples(
    samples: Sequence[Sample],
    *,
    advantage: Floats,
    weight: Floats,
    steps: Ints,
    shares_prefixes: bool = False,
    blank: Pictures | None = None,
) -> PackedBatch:
    """Return S steps as one batch, equal ones once.

    Args:
        samples: Each has a prompt and a response of at least one token.
        advantage: [S] of the step.
        weight: [S] in the optimizer step, of each of the response's tokens.
        steps: [S] the caller's numbers of the steps.
        shares_prefixes: Whether tokens at the beginning that several samples have are there once;
            none of them has images then.
        blank: Goes to the vision tower where no sample has images.
    """
    logprobs = np.concatenate([sample.logprob for sample in samples])
    temperature = np.array([sample.temperature for sample in samples], np.float32)
    length = np.array([len(sample.response) for sample in samples])
    segment = np.repeat(np.arange(len(samples)), length)
    is_scored = np.isfinite(logprobs)
    layout = _shared_layout(samples) if shares_prefixes else _layout(samples)
    return PackedBatch(
        input_ids=layout.input_ids,
        position_ids=layout.position_ids,
        cu_seqlens=layout.cu_seqlens.astype(np.int32),
        max_length=max(len(s.prompt) + len(s.response) for s in samples),
        predictor=layout.predictor,
        token_ids=_joined(s.response for s in samples),
        behaviour_logprobs=np.where(is_scored, logprobs, 0).astype(np.float32),
        is_scored=is_scored,
        temperature=temperature[segment],
        advantage=advantage.astype(np.float32)[segment],
        weight=np.where(is_scored, weight[segment], 0).astype(np.float32),
        segment=segment,
        steps=steps,
        keys=layout.keys,
        pictures=_together(layout.pictures or ((blank,) if blank else ())),
    )


def _together(pictures: Sequence[Pictures]) -> Pictures | None:
    if not pictures:
        return None
    return Pictures(
        patches=np.concatenate([each.patches for each in pictures]),
        grids=np.concatenate([each.grids for each in pictures]),
        places=np.concatenate([each.places for each in pictures]),
    )


def _layout(samples: Sequence[Sample]) -> _Layout:
    """Lay out each distinct sample once, as it is."""
    distinct, sequence = _distinct(samples)
    size = np.array([len(s.prompt) + len(s.response) for s in distinct])
    starts = np.concatenate([[0], np.cumsum(size)])
    first = starts[sequence] + np.array([len(s.prompt) for s in samples]) - 1
    return _Layout(
        input_ids=_joined(ids for s in distinct for ids in (s.prompt, s.response)),
        position_ids=_positions(distinct),
        cu_seqlens=starts,
        predictor=_joined(
            start + np.arange(len(s.response)) for start, s in zip(first, samples, strict=True)
        ),
        keys=None,
        pictures=tuple(
            replace(sample.pictures, places=sample.pictures.places + start)
            for sample, start in zip(distinct, starts, strict=False)
            if sample.pictures is not None
        ),
    )


def _positions(samples: Sequence[Sample]) -> Ints:
    """Return [T] positions, or [3, T] if a sample has images."""
    flat = [np.arange(len(s.prompt) + len(s.response)) for s in samples]
    if all(s.positions is None for s in samples):
        return np.concatenate(flat)
    each = [
        np.tile(one, (3, 1)) if sample.positions is None else sample.positions
        for sample, one in zip(samples, flat, strict=True)
    ]
    return np.concatenate(each, axis=1)


def _shared_layout(samples: Sequence[Sample]) -> _Layout:
    """Lay out the tokens of each sample that no earlier one has, in the order of prefixes."""
    tokens = [sample.tokens for sample in samples]
    order, shared = sort_by_prefix(tokens)
    positions: dict[int, Ints] = {}
    runs: list[tuple[int, int]] = []
    num_tokens, position = 0, np.empty(0, np.int64)
    for number, num_shared in zip(order.tolist(), shared.tolist(), strict=True):
        num_new = len(tokens[number]) - num_shared
        position = np.append(position[:num_shared], num_tokens + np.arange(num_new))
        positions[number] = position
        num_tokens += num_new
        if num_new:
            runs.append((number, num_shared))
    keys = [positions[number] for number, _ in runs]
    # Turns that only continue each other are one run, which attends to itself.
    shares = any(first for _, first in runs)
    return _Layout(
        input_ids=_joined(tokens[number][first:] for number, first in runs),
        position_ids=_joined(np.arange(first, len(tokens[number])) for number, first in runs),
        cu_seqlens=_bounds(len(tokens[number]) - first for number, first in runs),
        predictor=_joined(
            positions[number][len(sample.prompt) - 1 : -1] for number, sample in enumerate(samples)
        ),
        keys=SharedKeys(
            positions=_joined(keys), cu_seqlens=_bounds(map(len, keys)).astype(np.int32)
        )
        if shares
        else None,
    )


def _distinct(samples: Sequence[Sample]) -> tuple[list[Sample], Ints]:
    """Return each sample of another prompt, response or images, and which of them each one is."""
    numbers: dict[tuple[bytes, bytes, tuple[bytes, ...]], int] = {}
    keys = [(s.prompt.tobytes(), s.response.tobytes(), s.images) for s in samples]
    which = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
    first = np.unique(which, return_index=True)[1]
    return [samples[position] for position in first], which


def _bounds(lengths: Iterable[int]) -> Ints:
    return np.cumsum([0, *lengths])


def _joined(arrays: Iterable[NDArray[np.integer]]) -> Ints:
    return np.concatenate(list(arrays), dtype=np.int64)
