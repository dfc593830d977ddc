"""Attention over packed samples: each sample sees itself, never its neighbours.

Registered with transformers under `PACKED_ATTENTION`. The samples' bounds travel through the model
as `cu_seq_lens_q` and so on, the names transformers gives them. On CUDA in half precision torch's
variable-length kernel does the work; elsewhere a loop of causal attention over samples.

Where samples share prefixes, a run of tokens has fewer queries than keys: its keys and values are
gathered from wherever the tokens before it are (`key_positions`), and the last query sees all.
"""

import inspect
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.attention.varlen import varlen_attn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface

from graphcredit.store.errors import InputError
from graphcredit.trainer.model.vision import has_vision

PACKED_ATTENTION = "graphcredit_packed"

_KERNEL_ARGUMENTS = frozenset(inspect.signature(varlen_attn).parameters)
"""torch 2.10 has `is_causal`; later versions `window_size`, `scale` and `enable_gqa`."""

_KERNEL_HEAD_DIM = 256
"""The widest head the kernel takes."""

_KERNEL_HEAD_STEP = 8
"""It takes heads whose width is a multiple of this."""


class Segments(NamedTuple):
    """The runs of tokens in a pass, and the tokens that each attends to."""

    bounds: Tensor
    """[S + 1] int32, where the runs start and the last one ends."""
    longest: int
    """Tokens of the longest run."""
    key_bounds: Tensor
    """[S + 1] int32, the same in `key_positions`; `bounds` without those."""
    longest_keys: int
    """Tokens that a run attends to, at most."""
    key_positions: Tensor | None
    """[K] int64, where the tokens are that each run attends to, itself last; None: itself only."""

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments that carry this through a model to its attention."""
        positions = {} if self.key_positions is None else {"key_positions": self.key_positions}
        return {
            "cu_seq_lens_q": self.bounds,
            "cu_seq_lens_k": self.key_bounds,
            "max_length_q": self.longest,
            "max_length_k": self.longest_keys,
            **positions,
        }


def register_attention() -> None:
    """Make `PACKED_ATTENTION` known to transformers."""
    AttentionInterface.register(PACKED_ATTENTION, cast("Any", packed_attention))
    AttentionMaskInterface.register(PACKED_ATTENTION, cast("Any", _no_mask))


def set_attention(causal_lm: Any, name: str) -> None:
    """Choose the attention of a model's language; a vision tower keeps its own."""
    of_text = {"text_config": name}
    causal_lm.set_attn_implementation(of_text if has_vision(causal_lm.config) else name)


def _no_mask(*, attention_mask: Tensor | None = None, **_: Any) -> None:
    """Replace the mask, because the samples' bounds contain all of its information."""
    if attention_mask is not None:
        raise InputError(
            "packed samples must come without an attention_mask, but one was given; "
            "their bounds (cu_seq_lens_q) say who sees whom"
        )


def packed_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    sliding_window: int | None = None,
    cu_seq_lens_q: Tensor | None = None,
    cu_seq_lens_k: Tensor | None = None,
    max_length_q: int | None = None,
    max_length_k: int | None = None,
    key_positions: Tensor | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """Return causal attention within each sample, in the form transformers expects.

    Args:
        module: The attention layer.
        query: [1, num_heads, T, D].
        key: [1, num_kv_heads, T, D]; num_kv_heads divides num_heads.
        value: [1, num_kv_heads, T, D'].
        attention_mask: None; see `_no_mask`.
        scaling: Of the scores; 1/sqrt(D) by default.
        sliding_window: A token sees this many tokens, itself included; all by default.
        cu_seq_lens_q: As `Segments.bounds`, and the next four as the rest of it.
        cu_seq_lens_k: `key_bounds`; `bounds` by default.
        max_length_q: `longest`.
        max_length_k: `longest_keys`; `longest` by default.
        key_positions: `key_positions`.
        others: Other arguments of transformers; those that would change the result are refused.

    Returns:
        [1, T, num_heads, D'] and None for the weights.

    Raises:
        InputError: The model needs a feature that packing lacks: a mask, soft-capped scores,
            attention sinks, a position bias, dropout, attention in both directions; or it does not
            hand on the samples' bounds.
    """
    _refuse_unknown(module, attention_mask, others)
    if cu_seq_lens_q is None or max_length_q is None:
        raise InputError(
            f"{type(module).__name__} did not receive the bounds of the packed samples: this "
            "model's code does not hand keyword arguments on to attention, so it cannot be trained"
        )
    if key_positions is not None:
        key, value = gathered(key, key_positions), gathered(value, key_positions)
    segments = Segments(
        cu_seq_lens_q,
        max_length_q,
        cu_seq_lens_q if cu_seq_lens_k is None else cu_seq_lens_k,
        max_length_q if max_length_k is None else max_length_k,
        None,
    )
    attend = _by_kernel if _is_for_kernel(query, value) else _by_sample
    return attend(query, key, value, segments, scaling, sliding_window), None


def gathered(keys: Tensor, positions: Tensor) -> Tensor:
    """Return [1, H, K, D] the keys or values at [K] positions, of [1, H, T, D].

    The gradient of one that many runs attend to is summed in float32: a sum in bfloat16 stops
    growing after some hundred terms.
    """
    return _Gathered.apply(keys, positions)  # pyright: ignore[reportReturnType]


class _Gathered(torch.autograd.Function):
    """`gathered`."""

    @staticmethod
    def forward(ctx: Any, keys: Tensor, positions: Tensor) -> Tensor:
        ctx.save_for_backward(positions)
        ctx.shape = keys.shape
        return keys.index_select(2, positions)

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor, None]:
        (gradient,) = grad_outputs
        (positions,) = ctx.saved_tensors
        wide = torch.promote_types(gradient.dtype, torch.float32)
        total = gradient.new_zeros(ctx.shape, dtype=wide)
        return total.index_add_(2, positions, gradient.to(wide)).to(gradient.dtype), None


def _refuse_unknown(
    module: nn.Module, attention_mask: Tensor | None, others: dict[str, Any]
) -> None:
    wanted = {
        "an attention mask": attention_mask is not None,
        "soft-capped scores": others.get("softcap") is not None,
        "attention sinks": others.get("s_aux") is not None,
        "a position bias": others.get("position_bias") is not None,
        "dropout": bool(others.get("dropout")),
        "attention in both directions": not getattr(module, "is_causal", True),
    }
    asked = [name for name, is_wanted in wanted.items() if is_wanted]
    if asked:
        raise InputError(
            f"{type(module).__name__} asks for {', '.join(asked)}, which packed attention does "
            "not have; train a model with plain causal attention"
        )


def _is_for_kernel(query: Tensor, value: Tensor) -> bool:
    return (
        query.is_cuda
        and query.dtype in (torch.bfloat16, torch.float16)
        and query.shape[-1] == value.shape[-1] <= _KERNEL_HEAD_DIM
        and query.shape[-1] % _KERNEL_HEAD_STEP == 0
    )


def _by_kernel(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    segments: Segments,
    scaling: float | None,
    window: int | None,
) -> Tensor:
    options: dict[str, Any] = {}
    if "window_size" in _KERNEL_ARGUMENTS:
        options["window_size"] = (-1 if window is None else window - 1, 0)
    elif window is None or window >= segments.longest_keys:
        options["is_causal"] = True
    else:
        raise InputError(
            f"a sliding window of {window} tokens needs a newer torch than {torch.__version__}"
        )
    if scaling is not None and "scale" in _KERNEL_ARGUMENTS:
        options["scale"] = scaling
    elif scaling is not None:
        query = query * (scaling * query.shape[-1] ** 0.5)
    if query.shape[1] != key.shape[1] and "enable_gqa" in _KERNEL_ARGUMENTS:
        options["enable_gqa"] = True  # Earlier versions take fewer key heads without being asked.
    query, key, value = (each[0].transpose(0, 1) for each in (query, key, value))
    output = varlen_attn(
        query,
        key,
        value,
        segments.bounds,
        segments.key_bounds,
        segments.longest,
        segments.longest_keys,
        **options,
    )
    return cast("Tensor", output)[None]


def _by_sample(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    segments: Segments,
    scaling: float | None,
    window: int | None,
) -> Tensor:
    is_shared = query.shape[1] != key.shape[1]
    lengths, key_lengths = segments.bounds.diff().tolist(), segments.key_bounds.diff().tolist()
    if sum(key_lengths) != key.shape[2]:
        raise InputError(
            f"attention must receive the {sum(key_lengths)} keys of packed samples that share "
            f"prefixes, but has {key.shape[2]}: this model's code does not hand key_positions on. "
            "Train it without share_prefixes"
        )
    samples = (query.split(lengths, 2), key.split(key_lengths, 2), value.split(key_lengths, 2))
    outputs = [
        scaled_dot_product_attention(
            *sample, **_causal(*sample[:2], window), scale=scaling, enable_gqa=is_shared
        ).transpose(1, 2)
        for sample in zip(*samples, strict=True)
    ]
    return torch.cat(outputs, dim=1)


def _causal(query: Tensor, key: Tensor, window: int | None) -> dict[str, Any]:
    """Return the arguments that make attention causal, where the last query is the last key's."""
    num_queries, num_keys = query.shape[2], key.shape[2]
    if num_queries == num_keys and (window is None or window >= num_keys):
        return {"is_causal": True}
    before = num_keys - num_queries
    sees = torch.ones(num_queries, num_keys, dtype=torch.bool, device=query.device).tril(before)
    return {"attn_mask": sees if window is None else sees.triu(before + 1 - window)}
