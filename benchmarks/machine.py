"""The machine of a table of timings, and runs of Python that are measured from outside."""

import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa


def describe() -> str:
    """Return processor, cores and versions in one line."""
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text(encoding="utf-8") if cpuinfo.exists() else ""
    models = [line.split(":", 1)[1].strip() for line in text.splitlines() if "model name" in line]
    model = models[0] if models else platform.processor() or "unknown processor"
    return (
        f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"pyarrow {pa.__version__}"
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """What a run of Python took."""

    printed: str
    seconds: float
    cpu: float
    """CPU seconds of all threads, and of the processes that it waited for."""
    mebibytes: float
    """Peak of resident memory, of the largest process."""


def run_python(*arguments: object) -> Run:
    """Run Python with arguments, in a process whose time and memory are measured.

    Raises:
        SystemExit: It failed.
    """
    start = time.perf_counter()
    command = [sys.executable, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} failed with {process.returncode}")
    return Run(
        printed=printed,
        seconds=time.perf_counter() - start,
        cpu=usage.ru_utime + usage.ru_stime,
        mebibytes=usage.ru_maxrss / 1024,
    )


def run_graphcredit(*arguments: object) -> Run:
    """Run a command of graphcredit as `run_python` does."""
    return run_python("-m", "graphcredit.cli.main", *arguments)
