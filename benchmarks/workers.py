"""Runs a benchmark's own module in several processes of gloo, each of which prints JSON."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

_SECONDS = 300


def run_workers(module: str, directory: Path, num_processes: int) -> list[Any]:
    """Return what each process printed on its last line.

    Args:
        module: Run with `--worker DIRECTORY`, in an environment as of torchrun.
        directory: What the processes share.
        num_processes: One process has no process group.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    # Large blocks go back to the system when they are freed, and so out of the peak.
    shared = {"OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}
    if num_processes > 1:
        shared |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        shared |= {"WORLD_SIZE": str(num_processes)}
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", module, "--worker", str(directory)],
            env={**os.environ, **shared, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
        )
        for rank in range(num_processes)
    ]
    said = [worker.communicate(timeout=_SECONDS)[0] for worker in workers]
    return [json.loads(text.splitlines()[-1]) for text in said]
