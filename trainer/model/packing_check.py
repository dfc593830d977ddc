"""Check that packed log-probabilities equal those of the model's own forward pass."""

from typing import Any

import torch
from torch import Tensor

from graphcredit.store.errors import InputError
from graphcredit.trainer.model.logprobs import Scorer
from graphcredit.trainer.model.packed_attention import PACKED_ATTENTION

_LENGTHS = (24, 40)
_TOLERANCE = 1e-2
"""Greatest allowed gap in nats. It is a hundred times the rounding error of float32, and a tenth of
the change by an unknown scale or by attention across samples."""


def check_scorer(name: str, scorer: Scorer) -> None:
    """Compare log-probabilities of packed samples with the model's own, sample by sample.

    The check finds faults that no list of architectures can: logits with a scale or cap that
    `logprobs.py` does not know, layers that see across samples, positions that are ignored.

    Raises:
        InputError: They differ.
    """
    num_tokens = scorer.causal_lm.get_input_embeddings().num_embeddings
    generator = torch.Generator().manual_seed(0)
    samples = [torch.randint(num_tokens, (n,), generator=generator) for n in _LENGTHS]
    with torch.no_grad():
        packed = _packed(scorer, samples)
        own = torch.cat(_own(scorer.causal_lm, samples))
    gap = (packed - own).abs().max().item()
    if not gap <= _TOLERANCE:
        raise InputError(
            f"{name}: log-probabilities of packed samples must be those of the model's own forward "
            f"pass, but differ by up to {gap:.3g} nats: {type(scorer.causal_lm).__name__} does "
            "something to its logits, positions or layers that this trainer does not know"
        )


def _packed(scorer: Scorer, samples: list[Tensor]) -> Tensor:
    lengths = [len(sample) for sample in samples]
    ids = torch.cat(samples)
    positions = torch.cat([torch.arange(length) for length in lengths])
    predicted = torch.nonzero(positions).squeeze(1)
    bounds = torch.tensor([0, *lengths]).cumsum(0)
    logprob, _ = scorer(
        ids,
        positions,
        bounds.to(torch.int32),
        max(lengths),
        predicted - 1,
        ids[predicted],
        torch.ones(len(predicted)),
        False,
    )
    return logprob


def _own(causal_lm: Any, samples: list[Tensor]) -> list[Tensor]:
    causal_lm.set_attn_implementation("eager")
    try:
        return [
            causal_lm(input_ids=ids[None], use_cache=False)
            .logits[0, :-1]
            .log_softmax(-1)
            .gather(-1, ids[1:, None])[:, 0]
            for ids in samples
        ]
    finally:
        causal_lm.set_attn_implementation(PACKED_ATTENTION)
