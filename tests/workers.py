"""Find the worker processes of a test, to kill them."""

import os
from pathlib import Path


def worker_pids() -> list[int]:
    """Return the workers of this process that have not ended."""
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    return [pid for pid in map(int, children) if _is_worker(pid)]


def _is_worker(pid: int) -> bool:
    try:
        return b"graphcredit.store.workers.child" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return False
