"""Measures what checkpoints and the saved policy take of each process' memory, and of time.

    python -m benchmarks.checkpoint_memory --processes 2

A model of 25 million parameters is trained for an update in processes of gloo. The baseline gathers
weights and moments in every process and writes them from the first one, as trainers with full state
dictionaries do. Files of a checkpoint have 16 MiB here, since the model is small, and 256 MiB in a
training. A figure is the most memory that a stage holds beyond what was there before it.
"""

import argparse
import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.distributed.tensor import DTensor

from benchmarks.machine import describe
from benchmarks.stage_memory import measured, print_stages
from benchmarks.train_memory import prepare
from benchmarks.workers import run_workers
from graphcredit.trainer.batching.packed_batch import Sample, pack_samples
from graphcredit.trainer.engine import sharded_tensors
from graphcredit.trainer.engine.distributed import destroy_process_group
from graphcredit.trainer.engine.engine import TrainingEngine
from graphcredit.trainer.engine.opening import open_engine
from graphcredit.trainer.fingerprint import Identity
from graphcredit.trainer.output.checkpoint import Progress, latest_checkpoint, save_checkpoint
from graphcredit.trainer.output.checkpoint_writer import CheckpointWriter

IDENTITY = Identity(plan="", configuration="", model="", reference="", arithmetic="")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _work(options.worker)
        return
    print(f"{describe()}, torch {torch.__version__}, {options.processes} processes")
    with tempfile.TemporaryDirectory() as directory:
        prepare(Path(directory))
        said = run_workers("benchmarks.checkpoint_memory", Path(directory), options.processes)
    print_stages(said)


def _work(directory: Path) -> None:
    torch.set_num_threads(1)
    sharded_tensors.FILE_BYTES = 16 << 20
    config = prepare(directory, write=False)
    engine = open_engine(config.model, config)
    _update(engine)
    out = directory / "checkpoints"
    progress = Progress(update=1, identity=IDENTITY.as_json())
    beside = engine.beside(minutes=5)
    writer = CheckpointWriter(beside, directory / "beside", keep=1, in_background=True)
    stages: dict[str, Callable[[], Any]] = {
        "baseline: gather and save": partial(_gather, engine, directory),
        "save a checkpoint": lambda: save_checkpoint(engine, out, engine.state(), progress, keep=1),
        "begin one in the background": lambda: writer.save(engine.state(), progress),
        "wait for it": writer.close,
        "load it": lambda: _load(engine, out),
        "save the policy": lambda: engine.save_pretrained(directory / "saved"),
    }
    print(json.dumps({name: measured(stage) for name, stage in stages.items()}))
    destroy_process_group()


def _update(engine: TrainingEngine) -> None:
    """Take an update, which makes the moments."""
    ids = np.arange(16)
    batch = pack_samples(
        [Sample(ids[:8].astype(np.int32), ids[8:].astype(np.int32), np.zeros(8, np.float32), 1.0)],
        advantage=np.ones(1),
        weight=np.ones(1),
        steps=np.zeros(1, np.int64),
    )
    engine.backward(-engine.score(batch).logprob.sum(), is_last=True)
    engine.update(1e-3)


def _gather(engine: TrainingEngine, directory: Path) -> None:
    state = engine.state()
    whole = {name: _whole(t) for name, t in {**state.weights, **state.optimizer}.items()}
    if engine.rank == 0:
        save_file(whole, directory / "whole.safetensors")
    engine.barrier()


def _whole(tensor: Tensor) -> Tensor:
    whole = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
    return whole.to("cpu", copy=True)


def _load(engine: TrainingEngine, directory: Path) -> None:
    found, _ = latest_checkpoint(engine, directory, IDENTITY)
    assert found is not None
    engine.load_state(found)


if __name__ == "__main__":
    main()
