"""Array types, and sums over segments without a Python loop."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphcredit.store.parquet.numbers import arrow_of, numpy_of

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]


def shares(number: NDArray[Any], of: NDArray[Any]) -> Floats:
    """Return [n] each number as a share of another one; NaN where that is 0."""
    return np.divide(number, of, out=np.full(len(of), np.nan), where=of > 0)


def starts_of_runs(codes: Ints) -> Ints:
    """Return where each run of equal codes starts, and the length at the end.

    Args:
        codes: [n] codes, equal ones adjacent.

    Returns:
        [num_runs + 1] positions; `[0]` for an empty array.
    """
    if not len(codes):
        return np.zeros(1, np.int64)
    changes = np.flatnonzero(codes[1:] != codes[:-1]) + 1
    return np.concatenate(([0], changes, [len(codes)]))


def factorise(keys: Ints) -> tuple[Ints, Ints]:
    """Number the distinct keys in order of first appearance.

    Args:
        keys: [n] any integers.

    Returns:
        [n] number of each key, and [num_distinct] the key of each number.
    """
    encoded = arrow_of(keys).dictionary_encode()
    return numpy_of(encoded.indices).astype(np.int64), numpy_of(encoded.dictionary)


def factorise_pairs(first: Ints, second: Ints) -> tuple[Ints, Ints, Ints]:
    """Number the distinct pairs of two arrays in order of first appearance.

    Each pair is one integer key, first · width + second, which must be less than 2^63.

    Args:
        first: [n] codes, at least 0.
        second: [n] codes, at least 0.

    Returns:
        [n] number of each pair; [num_distinct] the first, and the second code of each number.
    """
    width = int(second.max(initial=0)) + 1
    number, keys = factorise(first * width + second)
    return number, *np.divmod(keys, width)


def distinct_pairs(first: Ints, second: Ints) -> tuple[Ints, Ints]:
    """Return the distinct pairs of two arrays in ascending order. [num_distinct] each.

    Sorting them is faster than to number them, where there are many.

    Args:
        first: [n] codes, at least 0.
        second: [n] codes, at least 0.
    """
    width = int(second.max(initial=0)) + 1
    keys = np.sort(first * width + second)
    first, second = np.divmod(keys[starts_of_runs(keys)[:-1]], width)
    return first, second


def ranges(counts: Ints, runs: Ints) -> tuple[Ints, Ints]:
    """Lay out the items of some runs, one run after the other.

    Args:
        counts: [num_runs] how many items each run has; they stand one run after the other.
        runs: [n] any of the runs.

    Returns:
        Which of `runs` each item is there for, and its position among the items.
    """
    first = np.cumsum(counts) - counts
    count = counts[runs]
    owner = np.repeat(np.arange(len(runs)), count)
    before = np.cumsum(count) - count
    return owner, np.arange(len(owner)) + (first[runs] - before)[owner]


def sum_per_run(values: Floats, starts: Ints) -> Floats:
    """Return the sum of each run. [num_runs], from values [n] and starts [num_runs + 1]."""
    return np.add.reduceat(values, starts[:-1]) if len(values) else np.zeros(0)


def discounted_returns(reward: Floats, starts: Ints, gamma: float) -> Floats:
    """Return G_t = Σ_{k≥t} γ^{k-t} r_k within each run.

    Args:
        reward: [n] rewards, the steps of a trajectory adjacent and in order.
        starts: [num_runs + 1] where each trajectory starts.
        gamma: Discount.
    """
    return decayed_sums(reward, np.full(len(reward), gamma), starts)


def decayed_sums(values: Floats, decay: Floats, starts: Ints) -> Floats:
    """Return S_t = v_t + d_{t+1} S_{t+1} within each run, by doubling the horizon.

    After the pass with stride h, each entry holds the sum over its next 2h items; so a run of
    length T is done after log2(T) passes.

    Args:
        values: [n] v, the items of a run adjacent and in order.
        decay: [n] d.
        starts: [num_runs + 1] where each run starts.
    """
    sums, lengths = values.astype(np.float64), np.diff(starts)
    remaining = np.repeat(starts[1:], lengths) - np.arange(len(values))
    weight = np.append(decay[1:], 0.0)
    stride = 1
    while len(lengths) and stride < lengths.max():
        reaches = np.flatnonzero(remaining > stride)
        sums[reaches] += weight[reaches] * sums[reaches + stride]
        reaches = np.flatnonzero(remaining > 2 * stride)
        weight[reaches] *= weight[reaches + stride]
        stride *= 2
    return sums
