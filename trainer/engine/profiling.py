"""A trace of some optimizer steps, for chrome://tracing or Perfetto."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, schedule

from graphcredit.store.files.atomic import atomic_path


@contextmanager
def traced(path: Path, count: int, *, num_updates: int) -> Generator[Callable[[], None]]:
    """Trace optimizer steps within this context, and write the trace when they are done.

    The first step is not traced if others follow: it also loads and warms up what they use.

    Args:
        path: Of the trace; an older one is replaced.
        count: Optimizer steps to trace; 0 traces none.
        num_updates: Optimizer steps that will be made.

    Yields:
        A function to call after each optimizer step.
    """
    if not count or not num_updates:
        yield lambda: None
        return
    plan = None
    if num_updates > 1:
        plan = schedule(wait=0, warmup=1, active=min(count, num_updates - 1), repeat=1)

    def write(profiler: profile) -> None:
        with atomic_path(path) as temporary:
            profiler.export_chrome_trace(str(temporary))

    on_gpu = [ProfilerActivity.CUDA] if torch.cuda.is_available() else []
    with profile(
        activities=[ProfilerActivity.CPU, *on_gpu],
        schedule=plan,
        on_trace_ready=write,
        record_shapes=True,
    ) as profiler:
        yield profiler.step
