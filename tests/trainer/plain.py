"""Log-probabilities, entropies and gradients from whole logits, one step at a time."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from graphcredit.trainer.batching.packed_batch import PackedBatch, Sample
from graphcredit.trainer.model.logprobs import Scorer, scorer_arguments
from graphcredit.trainer.model.packed_attention import PACKED_ATTENTION, register_attention

FAMILIES: dict[str, dict[str, Any]] = {
    "qwen2": {},
    "llama": {"tie_word_embeddings": True},
    "mistral": {"sliding_window": 5},
    "gemma3_text": {"sliding_window": 4},
    "gpt2": {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64},
    "mixtral": {"num_local_experts": 4},
}
"""Families that treat positions, windows or layers differently."""


def packed(model: Any, batch: PackedBatch, *, want_entropy: bool = True) -> tuple[Tensor, Tensor]:
    """Return what the trainer computes for a batch."""
    register_attention()
    model.set_attn_implementation(PACKED_ATTENTION)
    arguments = scorer_arguments(batch, torch.tensor, want_entropy=want_entropy)
    scored = Scorer(model)(*arguments)
    return scored.logprob, scored.entropy


def one_by_one(model: Any, samples: Sequence[Sample]) -> tuple[Tensor, Tensor]:
    """Return the same from the model's own forward pass."""
    model.set_attn_implementation("eager")
    logprobs: list[Tensor] = []
    entropies: list[Tensor] = []
    for sample in samples:
        ids = torch.from_numpy(sample.tokens).long()
        logits = model(ids[None], use_cache=False).logits[0, len(sample.prompt) - 1 : -1]
        predicted = (logits / sample.temperature).log_softmax(-1)
        logprobs.append(predicted[range(len(predicted)), ids[len(sample.prompt) :]])
        entropies.append(-(predicted.exp() * predicted).sum(-1))
    return torch.cat(logprobs), torch.cat(entropies)


def gradients(model: Any, weight: Tensor, scored: tuple[Tensor, Tensor]) -> list[Tensor]:
    """Return the gradient of weighted log-probabilities and entropies by each parameter."""
    loss = (weight * scored[0]).sum() - 0.5 * (weight * scored[1]).sum()
    # An expert that no token chose has none.
    slopes = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    return [torch.zeros(()) if each is None else each for each in slopes]
