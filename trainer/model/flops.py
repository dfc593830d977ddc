"""Count the floating-point operations of an update, and give the peak of a device."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from graphcredit.trainer.batching.packed_batch import PackedBatch

PEAK_FLOPS: Mapping[str, float] = MappingProxyType(
    {
        "B200": 2250e12,
        "H200 NVL": 835e12,
        "H200": 989e12,
        "H100 PCIe": 756e12,
        "H100 NVL": 835e12,
        "H100": 989e12,
        "L40S": 362e12,
        "A100": 312e12,
    }
)
"""Dense bfloat16 operations per second, by a part of the device's name: the first that it has."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelShape:
    """Sizes of a causal language model that determine its floating-point operations."""

    num_body: int
    """Parameters that every token goes through: all but the embeddings, the head, and the experts
    that a token does not choose. A vision tower is not counted."""
    num_head: int
    """Entries of the head's matrix: vocabulary size times hidden size."""
    num_frozen: int
    """How many of the first are not trained."""
    is_head_frozen: bool
    num_layers: int
    attention_width: int
    """Heads times head size."""


def training_flops(shape: ModelShape, batch: PackedBatch) -> float:
    """Return the operations of a forward and a backward pass.

    Each parameter costs 2 operations per token forward and 4 backward, or 2 if it is frozen,
    because it has no gradient. Attention is causal: n tokens at the end of a sequence of m make
    n m - n² / 2 pairs, for scores and for values. The head is applied where a response token is
    predicted. Recomputation to save memory does not count.
    """
    lengths = np.diff(batch.cu_seqlens).astype(np.float64)
    ends = lengths if batch.keys is None else np.diff(batch.keys.cu_seqlens).astype(np.float64)
    pairs = float((lengths * ends - lengths**2 / 2).sum())
    body = (6.0 * shape.num_body - 2.0 * shape.num_frozen) * len(batch.input_ids)
    head = (4.0 if shape.is_head_frozen else 6.0) * shape.num_head * len(batch.predictor)
    return body + head + 12.0 * shape.num_layers * shape.attention_width * pairs


def peak_flops(device_name: str) -> float | None:
    """Return the peak of a device, None where it is not known."""
    return next((peak for name, peak in PEAK_FLOPS.items() if name in device_name), None)
