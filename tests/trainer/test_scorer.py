"""Log-probabilities of packed samples, against the model's own logits computed the plain way."""

from typing import Any

import pytest
import torch
from torch import Tensor

from graphcredit.trainer.model.logprobs import Scorer, scorer_arguments
from graphcredit.trainer.model.packed_attention import PACKED_ATTENTION, register_attention
from tests.trainer.models import tiny_model
from tests.trainer.packs import Sample, pack_samples, random_samples

TEMPERATURE = 0.7
SAMPLES: list[Sample] = random_samples(5, seed=0)

FAMILIES: dict[str, dict[str, Any]] = {
    "qwen2": {},
    "llama": {"tie_word_embeddings": True},
    "mistral": {"sliding_window": 5},
    "gemma3_text": {"sliding_window": 4},
    "gpt2": {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64},
}
"""Families that treat positions or windows differently."""


def _scorer(model: Any) -> Scorer:
    register_attention()
    model.set_attn_implementation(PACKED_ATTENTION)
    return Scorer(model)


def _score(scorer: Scorer, samples: list[Sample], want_entropy: bool = True) -> list[Tensor]:
    batch = pack_samples(samples, temperature=TEMPERATURE)
    scored = scorer(*scorer_arguments(batch, torch.tensor, want_entropy=want_entropy))
    return [scored.logprob, scored.entropy]


def _plain(model: Any, samples: list[Sample]) -> tuple[Tensor, Tensor]:
    """Return log-probability and entropy from whole logits, one sample at a time."""
    model.set_attn_implementation("eager")
    logprobs: list[Tensor] = []
    entropies: list[Tensor] = []
    for prompt, response in samples:
        logits = model(torch.tensor([[*prompt, *response]]), use_cache=False).logits[0]
        predicted = (logits[len(prompt) - 1 : -1] / TEMPERATURE).log_softmax(-1)
        logprobs.append(predicted.gather(-1, torch.tensor(response)[:, None])[:, 0])
        entropies.append(-(predicted.exp() * predicted).sum(-1))
    return torch.cat(logprobs), torch.cat(entropies)


def _gradients(model: Any, logprob: Tensor, entropy: Tensor) -> list[Tensor]:
    weights = torch.randn(len(logprob), generator=torch.Generator().manual_seed(1))
    loss = (weights * logprob).sum() - 0.5 * entropy.mean()
    return list(torch.autograd.grad(loss, list(model.parameters())))


@pytest.mark.parametrize("kind", FAMILIES)
def test_packed_samples_have_the_models_own_logprobs_and_gradients(kind: str):
    expected = _plain(plain := tiny_model(kind, **FAMILIES[kind]), SAMPLES)
    packed = tiny_model(kind, **FAMILIES[kind])
    logprob, entropy = _score(_scorer(packed), SAMPLES)
    torch.testing.assert_close(logprob, expected[0], atol=1e-5, rtol=0)
    torch.testing.assert_close(entropy, expected[1], atol=1e-5, rtol=0)
    for ours, theirs in zip(
        _gradients(packed, logprob, entropy), _gradients(plain, *expected), strict=True
    ):
        assert (ours - theirs).norm() <= 1e-5 * theirs.norm() + 1e-6


def test_packed_is_one_by_one_is_padded():
    model = tiny_model()
    scorer = _scorer(model)
    packed, _ = _score(scorer, SAMPLES)
    one_by_one = torch.cat([_score(scorer, [sample])[0] for sample in SAMPLES])
    torch.testing.assert_close(packed, one_by_one, atol=1e-5, rtol=0)

    model.set_attn_implementation("sdpa")
    lengths = [len(prompt) + len(response) for prompt, response in SAMPLES]
    ids = torch.zeros(len(SAMPLES), max(lengths), dtype=torch.long)
    for row, (prompt, response) in zip(ids, SAMPLES, strict=True):
        row[: len(prompt) + len(response)] = torch.tensor([*prompt, *response])
    mask = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    logits = model(ids, attention_mask=mask).logits / TEMPERATURE
    padded = [
        logits[i, len(prompt) - 1 : length - 1].log_softmax(-1)[range(len(response)), response]
        for i, ((prompt, response), length) in enumerate(zip(SAMPLES, lengths, strict=True))
    ]
    torch.testing.assert_close(packed, torch.cat(padded), atol=1e-5, rtol=0)


def test_entropy_has_a_gradient_only_if_it_is_wanted():
    scorer = _scorer(tiny_model())
    wanted = _score(scorer, SAMPLES)
    unwanted = _score(scorer, SAMPLES, want_entropy=False)
    assert wanted[1].requires_grad
    assert unwanted[0].requires_grad
    assert not unwanted[1].requires_grad
    torch.testing.assert_close(unwanted[1], wanted[1].detach())


def test_a_neighbour_changes_nothing():
    scorer = _scorer(tiny_model())
    first, second, other = SAMPLES[:3]
    num_second = len(second[1])
    beside_first = _score(scorer, [first, second])[0][-num_second:]
    beside_other = _score(scorer, [other, second])[0][-num_second:]
    torch.testing.assert_close(beside_first, beside_other, atol=1e-6, rtol=0)
