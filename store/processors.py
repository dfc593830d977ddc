"""The number of processors that this process may use."""

import os


def num_processors() -> int:
    """Return how many processors there are for this process, at least 1."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1
