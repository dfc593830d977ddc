"""Log-probabilities of packed samples, against the model's own logits computed the plain way."""

import pytest
import torch
from torch import Tensor

from tests.trainer.models import tiny_model
from tests.trainer.packs import Pair, as_sample, pack_samples, random_samples
from tests.trainer.plain import FAMILIES, gradients, one_by_one, packed

TEMPERATURE = 0.7
PAIRS = random_samples(5, seed=0)


def _score(model: object, pairs: list[Pair], *, want_entropy: bool = True) -> tuple[Tensor, Tensor]:
    return packed(model, pack_samples(pairs, temperature=TEMPERATURE), want_entropy=want_entropy)


@pytest.mark.parametrize("kind", FAMILIES)
def test_packed_samples_have_the_models_own_logprobs_and_gradients(kind: str):
    ours, theirs = (tiny_model(kind, **FAMILIES[kind]) for _ in range(2))
    scored = _score(ours, PAIRS)
    expected = one_by_one(theirs, [as_sample(pair, temperature=TEMPERATURE) for pair in PAIRS])
    torch.testing.assert_close(scored, expected, atol=1e-5, rtol=0)
    weight = torch.randn(len(scored[0]), generator=torch.Generator().manual_seed(1))
    for one, other in zip(
        gradients(ours, weight, scored), gradients(theirs, weight, expected), strict=True
    ):
        assert (one - other).norm() <= 1e-5 * other.norm() + 1e-6


def test_packed_is_one_by_one_is_padded():
    model = tiny_model()
    scored, _ = _score(model, PAIRS)
    alone = torch.cat([_score(model, [pair])[0] for pair in PAIRS])
    torch.testing.assert_close(scored, alone, atol=1e-5, rtol=0)

    model.set_attn_implementation("sdpa")
    lengths = [len(prompt) + len(response) for prompt, response in PAIRS]
    ids = torch.zeros(len(PAIRS), max(lengths), dtype=torch.long)
    for row, (prompt, response) in zip(ids, PAIRS, strict=True):
        row[: len(prompt) + len(response)] = torch.tensor([*prompt, *response])
    mask = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    logits = model(ids, attention_mask=mask).logits / TEMPERATURE
    padded = [
        logits[i, len(prompt) - 1 : length - 1].log_softmax(-1)[range(len(response)), response]
        for i, ((prompt, response), length) in enumerate(zip(PAIRS, lengths, strict=True))
    ]
    torch.testing.assert_close(scored, torch.cat(padded), atol=1e-5, rtol=0)


def test_entropy_has_a_gradient_only_if_it_is_wanted():
    model = tiny_model()
    wanted, unwanted = (_score(model, PAIRS, want_entropy=flag) for flag in (True, False))
    assert wanted[1].requires_grad
    assert unwanted[0].requires_grad
    assert not unwanted[1].requires_grad
    torch.testing.assert_close(unwanted[1], wanted[1].detach())


def test_a_neighbour_changes_nothing():
    model, (first, second, other) = tiny_model(), PAIRS[:3]
    num_second = len(second[1])
    beside_first = _score(model, [first, second])[0][-num_second:]
    beside_other = _score(model, [other, second])[0][-num_second:]
    torch.testing.assert_close(beside_first, beside_other, atol=1e-6, rtol=0)
