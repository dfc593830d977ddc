"""Work for several processes: go on from a checkpoint, train, save; or die at it."""

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
from torch.distributed.tensor import DTensor

from graphcredit.trainer import training
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine import kept
from graphcredit.trainer.engine.distributed import Process, destroy_process_group
from graphcredit.trainer.engine.engine import TrainingEngine
from graphcredit.trainer.engine.opening import open_engine
from graphcredit.trainer.output.checkpoint import latest_checkpoint, save_checkpoint
from tests.trainer import rank_worker
from tests.trainer.packs import pack_samples, random_samples

NUM_SAMPLES = 7


def train(engine: TrainingEngine, update: int) -> float:
    """Take one update on seven samples, one in each micro-batch, however many share the work.

    Where a process runs out of samples it computes a dummy.
    """
    samples = random_samples(NUM_SAMPLES, seed=update)
    weight = 1 / sum(len(response) for _, response in samples)
    count = -(-NUM_SAMPLES // engine.world_size)
    for k in range(count):
        number = k * engine.world_size + engine.rank
        is_dummy = number >= NUM_SAMPLES
        batch = pack_samples([samples[0 if is_dummy else number]], weight=weight * (not is_dummy))
        loss = -(engine.score(batch).logprob * torch.tensor(batch.weight)).sum()
        engine.backward(loss)
    return engine.update(rank_worker.LEARNING_RATE)


def leg(directory: Path, lora_rank: int, first: int, count: int = 1) -> None:
    """Load the newest checkpoint, of the update `first`; take updates and save after each."""
    engine, number = _resumed(directory, lora_rank)
    assert number == first
    with engine.frozen():
        engine.score(pack_samples(random_samples(2, seed=0)))
    for update in range(first, first + count):
        norm = train(engine, update)
        assert engine.broadcast(norm if engine.rank == 0 else None) == norm
        (directory / f"norm-{update}").write_text(str(norm))
        _save(engine, directory, update + 1)
    _meet(engine)
    destroy_process_group()


def _meet(engine: TrainingEngine) -> None:
    last, count = engine.world_size - 1, engine.world_size
    values = np.array([1.0 + engine.rank, 1e-17])
    assert engine.all_reduce_sum(values).tolist() == [count * (count + 1) / 2, count * 1e-17]
    assert engine.all_reduce_max(values).tolist() == [1.0 + last, 1e-17]
    assert engine.broadcast({"rank": engine.rank, "text": "ü"}) == {"rank": 0, "text": "ü"}


def _save(engine: TrainingEngine, directory: Path, update: int) -> None:
    progress = rank_worker.progress(update)
    save_checkpoint(engine, directory / "out", engine.state(), progress, keep=9)


def fallen_back(directory: Path, update: int) -> None:
    """Load what is whole, and say which process was told of what is not."""
    engine = _open(directory, 0)
    found, notices = latest_checkpoint(engine, directory / "out", rank_worker.IDENTITY)
    assert found is not None
    (directory / f"told-{engine.rank}").write_text("\n".join(notices))
    assert found.progress.update == update
    engine.load_state(found)
    destroy_process_group()


def exported(directory: Path, lora_rank: int) -> None:
    """Load the newest checkpoint, and write the policy in many files."""
    engine, _ = _resumed(directory, lora_rank)
    engine.save_pretrained(directory / "saved")
    destroy_process_group()


def killed(directory: Path, victim: int, moment: str) -> None:
    """Die of SIGKILL while a checkpoint is written; `moment` is before or after one's own part."""
    engine, update = _resumed(directory, 0)
    train(engine, update)
    if engine.rank == victim:
        save = safetensors.torch.save

        def die(*args: Any, **kwargs: Any) -> bytes:
            data = save(*args, **kwargs)
            if moment == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            (directory / "written").touch()
            return data

        safetensors.torch.save = die
        if moment == "after":
            engine.gather = lambda value: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]
    _save(engine, directory, update + 1)


def _open(directory: Path, lora_rank: int) -> TrainingEngine:
    torch.set_num_threads(1)
    name = str(directory / "model")
    return open_engine(name, rank_worker.config(name, lora_rank))


def _resumed(directory: Path, lora_rank: int) -> tuple[TrainingEngine, int]:
    """Return the engine and the finished updates; each process has read its shards and no more."""
    engine = _open(directory, lora_rank)
    found, notices = latest_checkpoint(engine, directory / "out", rank_worker.IDENTITY)
    assert notices == []
    if found is None:
        return engine, 0
    num_read = _count_reads()
    engine.load_state(found)
    state = engine.state()
    mine = [_local(t).numel() for t in (*state.weights.values(), *state.optimizer.values())]
    assert num_read[0] == sum(mine)
    return engine, found.progress.update


def _local(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _count_reads() -> list[int]:
    """Return a list whose only number grows by the numbers that are read from files."""
    count = [0]
    process = HuggingFaceStorageReader._process_read_request

    def counted(reader: Any, file: Any, request: Any, planner: Any) -> None:
        count[0] += request.lengths.numel()
        process(reader, file, request, planner)

    HuggingFaceStorageReader._process_read_request = counted  # type: ignore[method-assign]
    return count


def alone(directory: Path, lora_rank: int, num_updates: int) -> tuple[TrainingEngine, list[float]]:
    """Return what one process gets from as many updates, and the norms of their gradients."""
    engine = _open(directory, lora_rank)
    assert Process(engine.device).world_size == 1
    return engine, [train(engine, update) for update in range(num_updates)]


def trained(*configs: TrainConfig) -> None:
    """Make whole trainings, one after the other, as one of several processes."""
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept, "destroy_process_group", lambda: None)
        for config in configs:
            training.train(config)
    destroy_process_group()
