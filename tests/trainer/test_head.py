"""The head's scores by blocks, against whole rows of logits and autograd."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.nn.functional import linear

from benchmarks.head_memory import copies
from graphcredit.trainer.model import head as module
from graphcredit.trainer.model.head import head_logprobs

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


def test_gradients_are_the_slopes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_CHUNK", 3)
    monkeypatch.setattr(module, "_BLOCK", 6)
    assert gradcheck(lambda *parts: _ours(list(parts)), _inputs())


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
