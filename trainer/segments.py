"""Means over segments."""

import torch
from torch import Tensor


def segment_mean(values: Tensor, segment: Tensor, num_segments: int) -> Tensor:
    """Return for each item the mean over its segment, summed in float64.

    Args:
        values: [n] values.
        segment: [n] int64 segment of each, in 0 … num_segments-1, in any order.
        num_segments: Number of segments; some may be empty.

    Returns:
        [n] means, of the type of the values.
    """
    total = torch.zeros(num_segments, dtype=torch.float64, device=values.device)
    total.index_add_(0, segment, values.double())
    count = torch.bincount(segment, minlength=num_segments).clamp(min=1)
    return (total / count)[segment].to(values.dtype)
