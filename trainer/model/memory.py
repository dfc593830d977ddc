"""Estimate the memory of a training before it starts, by part."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from graphcredit.trainer.batching.plan import MicroBatchSize
from graphcredit.trainer.model.layers import count_weights, decoder_layers
from graphcredit.trainer.model.logprobs import Scorer
from graphcredit.trainer.model.meta_pass import pass_bytes

_FLOAT32 = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryEstimate:
    """Bytes of one process. They leave out what allocators, kernels and libraries take."""

    parameters: int
    """Its shard of the float32 weights."""
    gathered: int
    """Layers that are whole while they compute, in the type of the arithmetic; 0 without shards."""
    gradients: int
    """Float32."""
    moments: int
    """Its shard of AdamW's two moments."""
    activations: int | None
    """What a forward and a backward pass over the heaviest micro-batch hold at most, without
    logits; None where they depend on data (mixtures of experts, images)."""
    logits: int | None
    """What the head adds to that peak."""
    offloaded: int
    """Weights, moments and exchanged gradients that are kept in the memory of the host."""
    reference: int
    """Its shard of another reference's float32 weights, which are there before the first update,
    without gradients and moments; else 0."""
    copied: int
    """Host memory of the copy that a checkpoint in the background is written from, else 0."""
    checkpoint: int
    """Host memory that writing a checkpoint takes: a file's tensors and its bytes. There are no
    gradients then, unless it is written in the background."""

    @property
    def on_device(self) -> int:
        """Bytes on the device at the peak of an update, or of the pass of the reference."""
        weights = 0 if self.offloaded else self._weights
        return max(self._all - self.offloaded, self.gathered + weights)

    @property
    def on_cpu(self) -> int:
        """Bytes at the peak of a training on the CPU, where host and device are one."""
        beside = self._all if self.copied else self.parameters + self.moments
        writing = beside + self.copied + self.checkpoint
        return max(self._all, self.gathered + self._weights, writing)

    @property
    def _weights(self) -> int:
        return self.parameters + self.reference

    @property
    def _all(self) -> int:
        passing = (self.activations or 0) + (self.logits or 0)
        return self.parameters + self.moments + self.gathered + self.gradients + passing


def estimate_memory(
    scorer: Scorer,
    sizes: Iterable[MicroBatchSize],
    *,
    num_processes: int,
    num_shards: int,
    dtype: str,
    moments: str,
    sums_gradients: bool,
    offloads: bool,
    in_background: bool,
    file_bytes: int,
    reference: Scorer | None = None,
    has_images: bool = False,
    context_size: int = 1,
) -> MemoryEstimate:
    """Return the memory that a training takes in each process.

    Args:
        scorer: The model on the meta device, in float32, with its adapters.
        sizes: Of the micro-batches.
        num_processes: Processes that share the training.
        num_shards: Processes that share a copy of the model.
        dtype: Type of the arithmetic: float32 or bfloat16.
        moments: Type of AdamW's moments: float32 or bfloat16.
        sums_gradients: Whether a process sums whole gradients over micro-batches before it
            exchanges them.
        offloads: Whether shards are kept in the memory of the host.
        in_background: Whether checkpoints are written while the training goes on.
        file_bytes: Most bytes of a file of a checkpoint, which is put together in memory.
        reference: Another reference on the meta device, if there is one.
        has_images: Whether steps have images, whose size is seen only when they are read.
        context_size: Processes that run a micro-batch together.
    """
    is_sharded = num_processes > 1 or offloads or dtype == "bfloat16"
    num_others = 0 if reference is None else count_weights(reference.parameters())
    num_all, num_trained = count_weights(scorer.parameters()), count_weights(_trained(scorer))
    layers = [count_weights(layer.parameters()) for layer in decoder_layers(scorer)]
    # One shard keeps whole layers; several hold the ends, a layer, and the next one on its way.
    num_whole = num_all if num_shards == 1 else num_all - sum(layers) + 2 * max(layers)
    mine = -(-num_trained // num_shards)
    of_weights, of_moments = _FLOAT32 * -(-num_all // num_shards), 2 * _width(moments) * mine
    of_gradients = _FLOAT32 * (num_trained if sums_gradients else mine)
    # Copies share the writing of what they all have.
    of_file = min(file_bytes, (_FLOAT32 + 2 * _width(moments)) * -(-num_trained // num_processes))
    activations, logits = (
        (None, None)
        if has_images
        else _passes(scorer.to(getattr(torch, dtype)), sizes, context_size)
    )
    return MemoryEstimate(
        parameters=of_weights,
        gathered=_width(dtype) * num_whole if is_sharded else 0,
        gradients=of_gradients,
        moments=of_moments,
        activations=activations,
        logits=logits,
        # Whole gradients are added up where they are computed.
        offloaded=offloads * (of_weights + of_moments + (not sums_gradients) * of_gradients),
        reference=_FLOAT32 * -(-num_others // num_shards),
        copied=in_background * (_FLOAT32 * mine + of_moments),
        checkpoint=2 * of_file,
    )


def _width(dtype: str) -> int:
    """Return the bytes of a number."""
    return torch.finfo(getattr(torch, dtype)).bits // 8


def _passes(
    scorer: Scorer, sizes: Iterable[MicroBatchSize], context_size: int
) -> tuple[int | None, int | None]:
    """Return the bytes of activations and of logits in the heaviest micro-batch."""
    listed = sorted({*sizes})
    candidates = {max(listed, key=lambda size: size[place]) for place in range(3)}
    try:
        measure = partial(pass_bytes, scorer, context_size=context_size)
        peak, heaviest = max((measure(size), size) for size in candidates)
        body = measure(heaviest._replace(num_responses=1))
    except (RuntimeError, NotImplementedError):
        return None, None
    return body, peak - body


def _trained(module: nn.Module) -> list[nn.Parameter]:
    return [p for p in module.parameters() if p.requires_grad]
