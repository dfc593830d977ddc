"""Seconds and memory of work on a device, and what to do when its memory does not suffice."""

import gc
import time
from collections.abc import Callable

import torch


def best(run: Callable[[], object], repeats: int) -> float:
    """Return the least seconds of some runs, after one run that does not count."""
    run()
    seconds: list[float] = []
    for _ in range(repeats):
        started = synchronised_clock()
        run()
        seconds.append(synchronised_clock() - started)
    return min(seconds)


def synchronised_clock() -> float:
    """Return seconds, when the device has done all it was asked to."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def fitting(
    run: Callable[[int], float], first: int, *, least: int = 1
) -> tuple[float, int, float | None]:
    """Run with the largest size that fits into the device's memory, of a size and its halves.

    Args:
        run: Takes a size and returns seconds.
        first: The size to begin with.
        least: The last one that is tried.

    Returns:
        The seconds, the size, and the most GiB of the device that were in use, if it is a GPU.

    Raises:
        torch.OutOfMemoryError: The least does not fit.
    """
    size = first
    while True:
        free_memory()
        try:
            seconds = run(size)
        except torch.OutOfMemoryError:
            if size // 2 < least:
                raise
        else:
            return seconds, size, _peak()
        # Not within `except`: the error holds what was computed.
        size //= 2


def free_memory() -> None:
    """Give back what earlier work held on the device, and count its peak anew."""
    # Modules in shards refer to each other.
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def _peak() -> float | None:
    return torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_available() else None
