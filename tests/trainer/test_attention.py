"""Attention within samples, against a softmax written out over the whole packed sequence."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from graphcredit.store.errors import InputError
from graphcredit.trainer.model import packed_attention as attention
from graphcredit.trainer.model.packed_attention import (
    PACKED_ATTENTION,
    packed_attention,
    register_attention,
)
from tests.trainer.models import tiny_model

LENGTHS = [7, 1, 12, 4]
BOUNDS = torch.tensor([0, *LENGTHS]).cumsum(0).to(torch.int32)


def _heads(num_heads: int, dim: int = 8, *, seed: int = 0, length: int = sum(LENGTHS)) -> Tensor:
    return torch.randn(
        1, num_heads, length, dim, generator=torch.Generator().manual_seed(seed)
    ).requires_grad_()


def _written_out(
    query: Tensor, key: Tensor, value: Tensor, bounds: Tensor, scale: float, window: int | None
) -> Tensor:
    """Return attention by its definition: token i sees j of its own sample, i - window < j <= i."""
    length = query.shape[2]
    sample = torch.repeat_interleave(torch.arange(len(bounds) - 1), bounds.diff().long())
    distance = torch.arange(length)[:, None] - torch.arange(length)[None]
    sees = (sample[:, None] == sample[None]) & (distance >= 0) & (distance < (window or length))
    key, value = (x.repeat_interleave(query.shape[1] // x.shape[1], dim=1) for x in (key, value))
    scores = (query @ key.mT * scale).masked_fill(~sees, -torch.inf)
    return (scores.softmax(-1) @ value).transpose(1, 2)


@pytest.mark.parametrize("num_kv_heads", [4, 2, 1])
@pytest.mark.parametrize("window", [None, 1, 3, 12, 100])
def test_values_and_gradients_are_those_of_the_definition(num_kv_heads: int, window: int | None):
    parts = _heads(4), _heads(num_kv_heads, seed=1), _heads(num_kv_heads, 6, seed=2)
    found, weights = packed_attention(
        nn.Identity(),
        *parts,
        None,
        scaling=0.3,
        sliding_window=window,
        cu_seq_lens_q=BOUNDS,
        max_length_q=12,
    )
    expected = _written_out(*parts, BOUNDS, 0.3, window)
    assert weights is None
    assert found.is_contiguous()
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)
    direction = torch.randn(expected.shape, generator=torch.Generator().manual_seed(3))
    for ours, theirs in zip(
        torch.autograd.grad((found * direction).sum(), parts),
        torch.autograd.grad((expected * direction).sum(), parts),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"softcap": 50.0}, "soft-capped scores"),
        ({"s_aux": torch.zeros(4)}, "attention sinks"),
        ({"position_bias": torch.zeros(4)}, "position bias"),
        ({"dropout": 0.1}, "dropout"),
    ],
)
def test_what_packing_cannot_give_is_refused(asked: dict[str, object], named: str):
    with pytest.raises(InputError, match=named):
        packed_attention(
            nn.Identity(), *[_heads(4)] * 3, None, cu_seq_lens_q=BOUNDS, max_length_q=12, **asked
        )


def test_attention_in_both_directions_is_refused():
    encoder = nn.Identity()
    encoder.is_causal = False
    with pytest.raises(InputError, match="both directions"):
        packed_attention(encoder, *[_heads(4)] * 3, None, cu_seq_lens_q=BOUNDS, max_length_q=12)


def test_a_model_that_keeps_the_bounds_to_itself_is_refused():
    with pytest.raises(InputError, match="did not receive the bounds"):
        packed_attention(nn.Identity(), *[_heads(4)] * 3, None)


@pytest.mark.parametrize("shape", [(1, 24), (1, 1, 24, 24)])
def test_an_attention_mask_is_refused(shape: tuple[int, ...]):
    register_attention()
    model = tiny_model()
    model.set_attn_implementation(PACKED_ATTENTION)
    with pytest.raises(InputError, match=r"attention.mask"):
        model(
            torch.ones(1, 24, dtype=torch.long),
            attention_mask=torch.ones(shape),
            cu_seq_lens_q=BOUNDS,
            max_length_q=12,
        )


def _kernel(query: Tensor, key: Tensor, value: Tensor, *bounds: Any, **options: Any) -> Tensor:
    """Stand in for torch's kernel: tokens first, [T, heads, D], and the window to the left."""
    cu_seqlens, _, max_length, _ = bounds
    assert max_length == cu_seqlens.diff().max()
    left, right = options.get("window_size", (-1, 0 if options.get("is_causal") else -1))
    assert right == 0
    assert ("enable_gqa" in options) == ("enable_gqa" in attention._KERNEL_ARGUMENTS)
    parts = [each.transpose(0, 1)[None] for each in (query, key, value)]
    scale = options.get("scale", query.shape[-1] ** -0.5)
    return _written_out(*parts, cu_seqlens, scale, None if left < 0 else left + 1)[0]


@pytest.mark.parametrize("window", [None, 3, 100])
@pytest.mark.parametrize(
    "arguments", [{"is_causal"}, {"window_size", "scale"}, {"window_size", "scale", "enable_gqa"}]
)
def test_the_kernel_of_each_torch_is_called_as_it_wants(
    monkeypatch: pytest.MonkeyPatch, arguments: set[str], window: int | None
):
    monkeypatch.setattr(attention, "varlen_attn", _kernel)
    monkeypatch.setattr(attention, "_KERNEL_ARGUMENTS", arguments)
    monkeypatch.setattr(attention, "_is_for_kernel", lambda query, value: True)
    parts = _heads(4), _heads(2, seed=1), _heads(2, seed=2)
    options = {"scaling": 0.3, "sliding_window": window}
    bounds = {"cu_seq_lens_q": BOUNDS, "max_length_q": 12}
    if window == 3 and "is_causal" in arguments:
        with pytest.raises(InputError, match="needs a newer torch"):
            packed_attention(nn.Identity(), *parts, None, **options, **bounds)
        return
    found, _ = packed_attention(nn.Identity(), *parts, None, **options, **bounds)
    expected = _written_out(*parts, BOUNDS, 0.3, window)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="the kernel needs a CUDA device")
@pytest.mark.parametrize("window", [None, 100])
@pytest.mark.parametrize(("num_heads", "num_kv_heads", "dim"), [(12, 2, 128), (4, 4, 64)])
def test_the_kernel_agrees_with_the_definition_forward_and_backward(
    num_heads: int, num_kv_heads: int, dim: int, window: int | None
):
    lengths = [300, 1, 513, 64]
    bounds = torch.tensor([0, *lengths]).cumsum(0).to(torch.int32)
    sizes = num_heads, num_kv_heads, num_kv_heads
    parts = [
        _heads(n, dim, seed=seed, length=sum(lengths)).detach().bfloat16().float().requires_grad_()
        for seed, n in enumerate(sizes)
    ]
    on_gpu = [part.detach().cuda().bfloat16().requires_grad_() for part in parts]
    expected = _written_out(*parts, bounds, dim**-0.5, window)
    found, _ = packed_attention(
        nn.Identity(),
        *on_gpu,
        None,
        scaling=dim**-0.5,
        sliding_window=window,
        cu_seq_lens_q=bounds.cuda(),
        max_length_q=max(lengths),
    )
    torch.testing.assert_close(found.float().cpu(), expected, atol=2e-2, rtol=2e-2)
    direction = torch.randn(expected.shape, generator=torch.Generator().manual_seed(3)).bfloat16()
    found.backward(direction.cuda())
    expected.backward(direction.float())
    for ours, theirs in zip(on_gpu, parts, strict=True):
        gap = (ours.grad.float().cpu() - theirs.grad).norm() / theirs.grad.norm()
        assert gap < 2e-2


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="the kernel needs a CUDA device")
@pytest.mark.parametrize("window", [None, 100])
def test_the_kernel_aligns_a_run_with_the_end_of_its_keys(window: int | None):
    """A second sample goes on after the first 300 tokens of one of 513; against the CPU."""
    bounds = torch.tensor([0, 513, 713], dtype=torch.int32)
    key_bounds = torch.tensor([0, 513, 1013], dtype=torch.int32)
    positions = torch.cat([torch.arange(513), torch.arange(300), torch.arange(513, 713)])
    parts = [
        _heads(n, 64, seed=seed, length=713).detach().bfloat16().float().requires_grad_()
        for seed, n in enumerate((4, 2, 2))
    ]
    on_gpu = [part.detach().cuda().bfloat16().requires_grad_() for part in parts]
    lengths = {"max_length_q": 513, "max_length_k": 513, "sliding_window": window}
    tensors = {"cu_seq_lens_q": bounds, "cu_seq_lens_k": key_bounds, "key_positions": positions}
    expected, _ = packed_attention(nn.Identity(), *parts, None, **lengths, **tensors)
    there = {name: tensor.cuda() for name, tensor in tensors.items()}
    found, _ = packed_attention(nn.Identity(), *on_gpu, None, **lengths, **there)
    torch.testing.assert_close(found.float().cpu(), expected, atol=2e-2, rtol=2e-2)
    direction = torch.randn(expected.shape, generator=torch.Generator().manual_seed(3)).bfloat16()
    found.backward(direction.cuda())
    expected.backward(direction.float())
    for ours, theirs in zip(on_gpu, parts, strict=True):
        gap = (ours.grad.float().cpu() - theirs.grad).norm() / theirs.grad.norm()
        assert gap < 2e-2


def test_the_kernel_gets_the_gathered_keys_and_their_bounds(monkeypatch: pytest.MonkeyPatch):
    """As the call was written down for two runs, the second after 2 tokens of the first."""
    asked: list[Any] = []

    def kernel(query: Tensor, key: Tensor, value: Tensor, *bounds: Any, **options: Any) -> Tensor:
        asked.extend([query.shape[0], key[:, 0, 0].tolist(), value.shape[0], *bounds])
        return query

    monkeypatch.setattr(attention, "varlen_attn", kernel)
    monkeypatch.setattr(attention, "_is_for_kernel", lambda query, value: True)
    place = torch.arange(6.0).expand(2, 8, 6).mT[None].contiguous()
    bounds, key_bounds = torch.tensor([0, 4, 6]), torch.tensor([0, 4, 8])
    packed_attention(
        nn.Identity(),
        *[place] * 3,
        None,
        cu_seq_lens_q=bounds,
        cu_seq_lens_k=key_bounds,
        max_length_q=4,
        max_length_k=4,
        key_positions=torch.tensor([0, 1, 2, 3, 0, 1, 4, 5]),
    )
    assert asked == [6, [0, 1, 2, 3, 0, 1, 4, 5], 8, bounds, key_bounds, 4, 4]


def test_a_key_of_many_runs_has_its_gradient_summed_in_float32():
    """Runs of one query each, which all begin with the same token: 2,048 terms of about 1."""
    num_runs, generator = 2048, torch.Generator().manual_seed(0)
    terms = 1 + 0.1 * torch.rand(1, 1, num_runs, 4, generator=generator)
    keys = torch.zeros(1, 1, 1, 4, dtype=torch.bfloat16, requires_grad=True)
    found = attention.gathered(keys, torch.zeros(num_runs, dtype=torch.int64))
    found.backward(terms.bfloat16())
    assert keys.grad is not None
    assert keys.grad.dtype == torch.bfloat16
    expected = terms.bfloat16().double().sum(2, keepdim=True)
    assert torch.allclose(keys.grad.double(), expected, rtol=2**-8)
