"""Log-probabilities, of packed samples and by blocks of the head, against plain logits."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import linear

from benchmarks.head_memory import copies
from graphcredit.trainer.model import head as module
from graphcredit.trainer.model.head import head_logprobs
from tests.trainer.models import tiny_model
from tests.trainer.packs import Pair, as_sample, pack_samples, random_samples
from tests.trainer.plain import FAMILIES, gradients, one_by_one, packed

NUM_TOKENS, WIDTH, VOCABULARY = 7, 5, 23


@pytest.fixture(params=[4, 23, 100])
def _block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", request.param)


def _inputs(dtype: torch.dtype = torch.float64, spread: float = 1.0) -> list[Tensor]:
    """Hidden states and weight."""
    generator = torch.Generator().manual_seed(0)
    shapes = (NUM_TOKENS, WIDTH), (VOCABULARY, WIDTH)
    drawn = [torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes]
    return [(spread * each).to(dtype).requires_grad_() for each in drawn]


def _tokens() -> tuple[Tensor, Tensor]:
    ids = torch.tensor([0, 3, 4, 22, 7, 7, 11])
    return ids, torch.tensor([1.0, 0.7, 1.0, 0.5, 2.0, 1.0, 0.9])


def _ours(parts: list[Tensor], *, entropy: bool = True) -> Any:
    hidden, weight = parts
    return head_logprobs(weight, hidden, *_tokens(), want_entropy=entropy)


def _whole(parts: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Return the same from the definition, in one piece."""
    hidden, weight = parts
    ids, temperature = _tokens()
    products = linear(hidden, weight)
    logits = products.to(torch.promote_types(hidden.dtype, torch.float32))
    log_p = (logits / temperature[:, None]).log_softmax(-1)
    return log_p[range(len(ids)), ids], -(log_p.exp() * log_p).sum(-1)


def _gradients(parts: list[Tensor], scored: tuple[Tensor, Tensor]) -> list[Tensor]:
    weights = torch.linspace(-1, 2, NUM_TOKENS, dtype=scored[0].dtype)
    loss = (weights * scored[0]).sum() + (weights.flip(0) * scored[1]).sum()
    return list(torch.autograd.grad(loss, parts))


@pytest.mark.usefixtures("_block")
@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_values_and_gradients_are_those_of_whole_rows(monkeypatch: pytest.MonkeyPatch, chunk: int):
    monkeypatch.setattr(module, "_CHUNK", chunk)
    parts = _inputs()
    found, expected = _ours(parts), _whole(parts)
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=1e-12)
    torch.testing.assert_close(
        _gradients(parts, found), _gradients(parts, expected), atol=1e-12, rtol=1e-12
    )


@pytest.mark.parametrize(("dtype", "gap"), [(torch.float32, 2e-6), (torch.bfloat16, 2e-2)])
def test_in_half_the_products_alone_are_half(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, gap: float
):
    monkeypatch.setattr(module, "_BLOCK", 6)
    parts = _inputs(dtype)
    found, expected = _ours(parts), _whole(parts)
    assert {each.dtype for each in found} == {torch.float32}
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)
    for ours, theirs in zip(_gradients(parts, found), _gradients(parts, expected), strict=True):
        assert ours.dtype == dtype
        assert (ours - theirs).norm() <= gap * theirs.norm()


def test_logits_of_hundreds_neither_overflow_nor_vanish(monkeypatch: pytest.MonkeyPatch):
    """exp(1000) is beyond float64; whole blocks are as unlikely as exp(-1000)."""
    monkeypatch.setattr(module, "_BLOCK", 4)
    parts = _inputs(spread=30.0)
    found, expected = _ours(parts), _whole(parts)
    assert expected[0].min() < -1000
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(
        _gradients(parts, found), _gradients(parts, expected), atol=1e-9, rtol=1e-9
    )


def test_a_frozen_head_gets_no_gradient_and_hidden_states_do():
    hidden, weight = _inputs()
    logprob, entropy = _ours([hidden, weight.detach()], entropy=False)
    assert not entropy.requires_grad
    expected, _ = _whole([hidden, weight])
    torch.testing.assert_close(
        torch.autograd.grad(logprob.sum(), hidden), torch.autograd.grad(expected.sum(), hidden)
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_chunk_takes_less_than_one_and_a_half_copies_of_its_logits(dtype: str):
    """Counted allocation by allocation; the plain way takes more than five copies."""
    assert copies("blocks", 64, 40_000, dtype) < 1.5
    assert copies("plain", 64, 40_000, dtype) > 4.5


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
