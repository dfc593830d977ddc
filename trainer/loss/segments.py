"""Sums and means over segments."""

import torch
from torch import Tensor


def segment_sum(values: Tensor, segment: Tensor, num_segments: int) -> Tensor:
    """Return for each item the sum over its segment, summed in float64.

    Returns:
        [n] sums, of the type of the values.
    """
    return _totals(values, segment, num_segments)[segment].to(values.dtype)


def segment_mean(values: Tensor, segment: Tensor, num_segments: int) -> Tensor:
    """Return for each item the mean over its segment; see `segment_sum`."""
    count = torch.bincount(segment, minlength=num_segments).clamp(min=1)
    means = _totals(values, segment, num_segments) / count
    return means[segment].to(values.dtype)


def _totals(values: Tensor, segment: Tensor, num_segments: int) -> Tensor:
    """Return [num_segments] sums in float64."""
    total = torch.zeros(num_segments, dtype=torch.float64, device=values.device)
    return total.index_add_(0, segment, values.double())
