"""Measures the memory of a training, and compares it with the estimate of `train --dry-run`.

    python -m benchmarks.train_memory                   one process, gloo
    python -m benchmarks.train_memory --processes 2     two of them
    python -m benchmarks.train_memory --tokens 4096     of a micro-batch; also --set lora_rank=8

A model of random weights is trained for two optimizer steps on the CPU. Each process reports the
most memory that it held beyond what it had when its libraries were loaded.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, Qwen2Config
from transformers.utils.logging import disable_progress_bar

from benchmarks.machine import describe
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.preview import preview
from graphcredit.trainer.training import train
from tests.trainer.logs import episode, token_store, turn

SHAPE: dict[str, Any] = {
    "vocab_size": 16_384,
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "tie_word_embeddings": False,
}
"""25 million parameters, two thirds of them in the embedding and the head."""

_OPTIONS = "options.json"
"""The options of the training that a process reads, beside its model and its store."""
_SECONDS = 300
"""Time that a process has."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--set", action="append", default=[], help="NAME=JSON, of the training")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _work(options.worker)
        return
    chosen = {name: json.loads(value) for name, _, value in (s.partition("=") for s in options.set)}
    print(f"{describe()}, torch {torch.__version__}")
    with tempfile.TemporaryDirectory() as directory:
        estimated, measured = measure(
            Path(directory), options.processes, chosen, num_tokens=options.tokens
        )
    for part in (name for name, each in estimated.items() if isinstance(each, int)):
        number = estimated[part]
        print(f"{part:<14}{number / 2**20:>9.0f} MiB estimated")
    for rank, peak in enumerate(measured):
        print(f"rank {rank:<9}{peak / 2**20:>9.0f} MiB at the peak")


def measure(
    directory: Path,
    num_processes: int,
    options: Mapping[str, Any] = MappingProxyType({}),
    *,
    num_tokens: int = 1024,
) -> tuple[dict[str, Any], list[int]]:
    """Train a model; return the estimate by part, and the peak of each process in bytes.

    Args:
        directory: An empty one.
        num_processes: That share the training.
        options: Of the training, as JSON values.
        num_tokens: Of a micro-batch, a multiple of 128.
    """
    sizes = {"batch_size": 2 * num_tokens // 128, "max_tokens": num_tokens}
    (directory / _OPTIONS).write_text(json.dumps({**sizes, **options}))
    write_inputs(directory, num_tokens)
    estimated = preview(_config(directory), num_processes=num_processes)["memory"]
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
            [sys.executable, "-m", "benchmarks.train_memory", "--worker", str(directory)],
            env={**os.environ, **shared, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
        )
        for rank in range(num_processes)
    ]
    printed = [worker.communicate(timeout=_SECONDS)[0] for worker in workers]
    return estimated, [int(text.splitlines()[-1]) for text in printed]


def write_inputs(directory: Path, num_tokens: int) -> None:
    """Write `model/` and `store/`: two optimizer steps of two micro-batches each."""
    disable_progress_bar()
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(Qwen2Config(**SHAPE), dtype=torch.float32)
    model.save_pretrained(directory / "model")
    random = np.random.default_rng(0)

    def ids(count: int) -> list[int]:
        return random.integers(SHAPE["vocab_size"], size=count).tolist()

    # So gradients and moments are there at the peak.
    turns = [turn(ids(64), ids(64), advantage=float(n % 2)) for n in range(4 * num_tokens // 128)]
    token_store(directory / "store", [episode(f"e{n}", each) for n, each in enumerate(turns)])


def _config(directory: Path) -> TrainConfig:
    options = json.loads((directory / _OPTIONS).read_text())
    return TrainConfig(
        store=(directory / "store",),
        out=directory / "out",
        model=str(directory / "model"),
        device="cpu",
        mismatch_tolerance=1e9,
        **options,
    )


def _work(directory: Path) -> None:
    torch.set_num_threads(1)
    disable_progress_bar()
    # A small pass loads what is loaded on first use; resetting needs no privileges.
    (torch.ones(2, requires_grad=True) * 2).sum().backward()
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    train(_config(directory))
    print(_status("VmHWM") - before)


def _status(name: str) -> int:
    """Return a size of this process in bytes, as Linux counts it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


if __name__ == "__main__":
    main()
