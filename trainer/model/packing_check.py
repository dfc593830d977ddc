"""Check that packed log-probabilities equal those of the model's own forward pass."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphcredit.store.errors import InputError
from graphcredit.trainer.batching.packed_batch import Pictures, Sample, pack_samples
from graphcredit.trainer.data.ragged import Ints
from graphcredit.trainer.model.logprobs import Scorer, scorer_arguments
from graphcredit.trainer.model.packed_attention import PACKED_ATTENTION, set_attention
from graphcredit.trainer.model.vision import ImageReader, has_vision, image_positions

_SAMPLES = ((0, 24), (0, 40))
_WITH_PREFIXES = (*_SAMPLES, (20, 24), (20, 16), (31, 9))
"""For each sample, how many tokens it has in common with the one before, and how many of its own.
The first of a sliding window is in the middle of a prefix."""
_TOLERANCE = 1e-2
"""Greatest allowed gap in nats. It is a hundred times the rounding error of float32, and a tenth of
the change by an unknown scale or by attention across samples."""


def check_scorer(name: str, scorer: Scorer, *, shares_prefixes: bool = False) -> None:
    """Compare log-probabilities of packed samples with the model's own, sample by sample.

    The check finds faults that no list of architectures can: logits with a scale or a
    cap, layers that see across samples, positions that are ignored, layers in
    which a token depends on more than those before it in its own sequence. Of a model that sees,
    images are compared too.

    Args:
        name: Of the model, for the error.
        scorer: The model in float32 on the CPU, whole or sharded; all its processes call this.
        shares_prefixes: Whether to compare samples that share prefixes, too.

    Raises:
        InputError: They differ, as they are or with shared prefixes if these are asked for.
    """
    _check(name, scorer, _samples(scorer, _SAMPLES), shares_prefixes=False)
    if has_vision(scorer.causal_lm.config):
        _check(name, scorer, _with_images(scorer.causal_lm.config), shares_prefixes=False)
    if shares_prefixes:
        _check(name, scorer, _samples(scorer, _WITH_PREFIXES), shares_prefixes=True)


def _check(name: str, scorer: Scorer, samples: list[Sample], *, shares_prefixes: bool) -> None:
    batch = pack_samples(
        samples,
        advantage=np.ones(len(samples)),
        weight=np.ones(len(samples)),
        steps=np.arange(len(samples)),
        shares_prefixes=shares_prefixes,
    )
    with torch.no_grad():
        arguments = scorer_arguments(batch, torch.from_numpy, want_entropy=False)
        packed = scorer(*arguments).logprob
        expected = torch.cat(_own(scorer, samples))
    gap = (packed - expected).abs().max().item()
    if not gap <= _TOLERANCE:
        what = "samples that share prefixes" if shares_prefixes else "packed samples"
        raise InputError(
            f"{name}: log-probabilities of {what} must be those of the model's own forward "
            f"pass, but differ by up to {gap:.3g} nats: {type(scorer.causal_lm).__name__} does "
            "something to its logits, positions or layers that this trainer does not know"
            + (". It may be trained without share_prefixes" if shares_prefixes else "")
        )


def _samples(scorer: Scorer, shapes: Sequence[tuple[int, int]]) -> list[Sample]:
    num_tokens = scorer.causal_lm.get_input_embeddings().num_embeddings
    random = np.random.default_rng(0)
    tokens = np.empty(0, np.int32)
    samples: list[Sample] = []
    for num_shared, num_own in shapes:
        fresh = random.integers(num_tokens, size=num_own, dtype=np.int32)
        tokens = np.append(tokens[:num_shared], fresh)
        zeros = np.zeros(len(tokens) - 1, np.float32)
        samples.append(Sample(tokens[:1], tokens[1:], zeros, 1.0))
    return samples


def _with_images(config: Any) -> list[Sample]:
    """Return samples of random pixels: two images in text, none, and one at the end."""
    merge, random = config.vision_config.spatial_merge_size, np.random.default_rng(0)
    size = ImageReader(Path(), config).blank().patches.shape[1]
    samples: list[Sample] = []
    for shapes in (((2, 3), (4, 1)), (), ((1, 2),)):
        grids = np.array([(1, merge * rows, merge * columns) for rows, columns in shapes])
        ids = [_text(config, random, 5)]
        for rows, columns in shapes:
            ids += [np.full(rows * columns, config.image_token_id), _text(config, random, 4)]
        tokens = np.concatenate(ids).astype(np.int32)
        zeros = np.zeros(len(tokens) - 1, np.float32)
        sample = Sample(tokens[:1], tokens[1:], zeros, 1.0)
        if shapes:
            patches = random.normal(size=(grids.prod(1).sum(), size)).astype(np.float32)
            is_image = tokens == config.image_token_id
            sample = sample._replace(
                pictures=Pictures(patches=patches, grids=grids, places=np.flatnonzero(is_image)),
                positions=image_positions(is_image, grids, merge),
            )
        samples.append(sample)
    return samples


def _text(config: Any, random: np.random.Generator, count: int) -> Ints:
    """Return tokens of text."""
    special = (config.image_token_id, config.video_token_id)
    known = np.setdiff1d(np.arange(config.get_text_config().vocab_size), special)
    return random.choice(known, count)


def _own(scorer: Scorer, samples: list[Sample]) -> list[Tensor]:
    set_attention(scorer.causal_lm, "eager")
    try:
        return [
            scorer.own_logprobs(ids, **_own_pictures(scorer.causal_lm.config, sample, ids))
            for sample, ids in ((s, torch.from_numpy(s.tokens).long()) for s in samples)
        ]
    finally:
        set_attention(scorer.causal_lm, PACKED_ATTENTION)


def _own_pictures(config: Any, sample: Sample, ids: Tensor) -> dict[str, Tensor]:
    """Return the arguments by which the model itself takes a sample's images."""
    if sample.pictures is None:
        return {}
    return {
        "pixel_values": torch.from_numpy(sample.pictures.patches),
        "image_grid_thw": torch.from_numpy(sample.pictures.grids),
        "mm_token_type_ids": (ids == config.image_token_id).int()[None],
    }
