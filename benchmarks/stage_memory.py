"""Seconds and peak memory of stages, measured in each of several processes."""

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.train_memory import status

Measured = tuple[float, int]
"""Seconds, and bytes beyond those that were held before."""


def measured(stage: Callable[[], Any]) -> Measured:
    """Return the seconds and the bytes of a stage; what it returns is given up afterwards."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before, started = status("VmRSS"), time.perf_counter()
    made = stage()
    seconds = time.perf_counter() - started
    peak = status("VmHWM") - before
    del made
    gc.collect()
    return seconds, peak


def print_stages(said: Sequence[Mapping[str, Measured]]) -> None:
    """Print a row for each stage: the seconds of the first process, and the memory of each."""
    print(f"{'stage':<28}{'seconds':>9}" + "".join(f"{f'rank {r}':>10}" for r in range(len(said))))
    for stage in said[0]:
        peaks = "".join(f"{each[stage][1] / 2**20:>6.0f} MiB" for each in said)
        print(f"{stage:<28}{said[0][stage][0]:>9.2f}{peaks}")
