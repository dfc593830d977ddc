"""Measures what loading a model takes of each process' memory, and of time.

    python -m benchmarks.load_memory --processes 2
    python -m benchmarks.load_memory --processes 2 --mixture

A model of 92 million parameters, in float32 on disk, is loaded by processes of gloo until it can be
trained; with `--mixture` one of 99 million, of which three quarters are in experts. The baseline
loads all of it in every process before it is cut into shards. A figure is the most memory that a
process holds beyond what it held before, pages of the mapped files included.
"""

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.distributed.device_mesh import init_device_mesh
from transformers import AutoModelForCausalLM, Qwen2Config, Qwen3MoeConfig
from transformers.utils.logging import disable_progress_bar

from benchmarks.machine import describe
from benchmarks.stage_memory import measured, print_stages
from benchmarks.train_memory import SHAPE
from benchmarks.workers import run_workers
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine.distributed import (
    Process,
    destroy_process_group,
    init_process_group,
)
from graphcredit.trainer.engine.sharded_loading import load_sharded
from graphcredit.trainer.engine.sharding import Layout, shard
from graphcredit.trainer.model.loading import load_model
from graphcredit.trainer.model.logprobs import Scorer
from tests.trainer.models import save_tiny_model

DEEP: dict[str, Any] = {**SHAPE, "num_hidden_layers": 32}
MIXTURE: dict[str, Any] = {
    **SHAPE,
    "num_hidden_layers": 8,
    "num_experts": 32,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 192,
}
CPU = torch.device("cpu")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--mixture", action="store_true")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _work(options.worker)
        return
    print(f"{describe()}, torch {torch.__version__}, {options.processes} processes")
    with tempfile.TemporaryDirectory() as directory:
        weights = _prepare(Path(directory), is_mixture=options.mixture)
        said = run_workers("benchmarks.load_memory", Path(directory), options.processes)
    print(f"float32 weights: {4 * weights / 2**20:.0f} MiB")
    print_stages(said)


def _prepare(directory: Path, *, is_mixture: bool) -> int:
    """Write the model, and a tiny one; return the number of the model's weights."""
    disable_progress_bar()
    torch.manual_seed(0)
    config = Qwen3MoeConfig(**MIXTURE) if is_mixture else Qwen2Config(**DEEP)
    model: Any = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.save_pretrained(directory / "model")
    save_tiny_model(directory / "tiny")
    return model.num_parameters()


def _work(directory: Path) -> None:
    torch.set_num_threads(1)
    disable_progress_bar()
    init_process_group(CPU, alone_too=True, minutes=5)
    mesh = init_device_mesh("cpu", (Process(CPU).world_size,))
    layout = Layout(mesh=mesh, is_half=False, keeps_whole=False, minutes=5)
    stages: dict[str, Callable[[str, Layout], Scorer]] = {
        "baseline: load all of it": _whole,
        "load the shards": _in_shards,
    }
    # What libraries load on first use is not counted.
    for load in stages.values():
        load(str(directory / "tiny"), layout)
    found = {
        name: measured(lambda load=load: load(str(directory / "model"), layout))
        for name, load in stages.items()
    }
    print(json.dumps(found))
    destroy_process_group()


def _whole(name: str, layout: Layout) -> Scorer:
    scorer = load_model(name, _config(name), adapter_seed="")
    shard(scorer, layout)
    return scorer


def _in_shards(name: str, layout: Layout) -> Scorer:
    return load_sharded(name, _config(name), layout, adapter_seed="")[0]


def _config(name: str) -> TrainConfig:
    return TrainConfig(store=Path(), out=Path(), model=name, device="cpu")


if __name__ == "__main__":
    main()
