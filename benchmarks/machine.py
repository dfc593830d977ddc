"""Describes the machine of a table of timings."""

import os
import platform
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
