"""Work for several processes: go on from a checkpoint, train, save; or die at it."""

import hashlib
import os
import signal
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import safetensors.torch
import torch
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
from torch.distributed.tensor import DTensor

from graphcredit.trainer import training
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine.distributed import Process, destroy_process_group
from graphcredit.trainer.engine.engine import TrainingEngine
from graphcredit.trainer.engine.opening import open_engine
from graphcredit.trainer.output.checkpoint import latest_checkpoint
from graphcredit.trainer.output.checkpoint_writer import CheckpointWriter
from tests.trainer import rank_worker
from tests.trainer.packs import pack_samples, random_samples

NUM_SAMPLES = 7


def train(engine: TrainingEngine, update: int) -> float:
    """Take one update on seven samples, one in each micro-batch, however many share the work.

    Where a process runs out of samples it computes a dummy.
    """
    samples = random_samples(NUM_SAMPLES, seed=update)
    weight = 1 / sum(len(response) for _, response in samples)
    count = -(-NUM_SAMPLES // engine.data_size)
    for k in range(count):
        number = k * engine.data_size + engine.data_rank
        is_dummy = number >= NUM_SAMPLES
        batch = pack_samples([samples[0 if is_dummy else number]], weight=weight * (not is_dummy))
        loss = -(engine.score(batch).logprob * torch.tensor(batch.weight)).sum()
        engine.backward(loss, is_last=k == count - 1)
    return engine.update(rank_worker.LEARNING_RATE)


def leg(
    directory: Path,
    lora_rank: int,
    first: int,
    count: int = 1,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Load the newest checkpoint, of the update `first`; take updates and save after each."""
    engine, found = _resumed(directory, lora_rank, **options)
    assert found == first
    in_background = options.get("background_checkpoints", False)
    process = engine.beside(minutes=1) if in_background else engine
    writer = CheckpointWriter(process, directory / "out", keep=9, in_background=in_background)
    with closing(writer):
        for update in range(first, first + count):
            train(engine, update)
            writer.save(engine.state(), rank_worker.progress(update + 1))
    destroy_process_group()


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


def killed(directory: Path, victim: int, moment: str, in_background: bool) -> None:
    """Die of SIGKILL while a checkpoint is written; `moment` is before or after one's own part."""
    engine, update = _resumed(directory, 0)
    process = engine.beside(minutes=1) if in_background else engine
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
            process.gather = lambda value: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]
    writer = CheckpointWriter(process, directory / "out", keep=9, in_background=in_background)
    with closing(writer):
        writer.save(engine.state(), rank_worker.progress(update + 1))
        # In the background the training goes on, until somebody is missing.
        train(engine, update + 1)


def reduced(directory: Path) -> None:
    """Train with both ways of exchanging gradients, and look at them between micro-batches."""
    found: list[dict[str, torch.Tensor]] = []
    for when in ("update", "micro-batch"):
        engine = _open(directory, 0, reduce_gradients=when)
        backward = engine.backward
        shards: list[bool] = []

        def watched(
            loss: torch.Tensor,
            *,
            is_last: bool,
            engine: Any = engine,
            backward: Any = backward,
            shards: Any = shards,
        ) -> None:
            backward(loss, is_last=is_last)
            if not is_last:
                shards.append(all(p.grad is not None for _, p in engine._trained))

        engine.backward = watched  # type: ignore[method-assign]
        train(engine, 0)
        assert shards == [when == "micro-batch"] * 3
        found.append(rank_worker.whole(engine.state().weights))
    for name, weight in found[0].items():
        torch.testing.assert_close(found[1][name], weight, rtol=1e-4, atol=1e-5)
    destroy_process_group()


def laid_out(directory: Path, layouts: list[dict[str, Any]]) -> None:
    """Train under several layouts; compare losses, norms and weights with those of the first."""
    found: list[tuple[list[float], dict[str, torch.Tensor], dict[str, torch.Tensor]]] = []
    for options in layouts:
        engine = _open(directory, 0, timeout=7.0, **options)
        assert _minutes(engine) == {7.0}
        measured = [
            value for update in range(3) for value in (_loss(engine), train(engine, update))
        ]
        weights = rank_worker.whole(engine.state().weights)
        found.append((measured, weights, rank_worker.whole(engine.state().optimizer)))
        assert len({*engine.gather(_digest(weights))}) == 1
    for options, (measured, weights, optimizer) in zip(layouts, found, strict=True):
        is_small = "moments" in options
        assert measured == pytest.approx(found[0][0], rel=1e-3 if is_small else 1e-6)
        rank_worker.assert_close(weights, found[0][1], gap=1e-3 if is_small else 1e-6)
        for name, value in optimizer.items():
            kind = torch.bfloat16 if is_small and not name.endswith(".step") else torch.float32
            assert value.dtype == kind
    destroy_process_group()


def _minutes(engine: TrainingEngine) -> set[float]:
    """Return how long the exchanges of shards and of copies wait."""
    meshes = {t.device_mesh for t in engine.state().weights.values() if isinstance(t, DTensor)}
    backends = [
        group._get_backend(engine.device) for mesh in meshes for group in mesh.get_all_groups()
    ]
    return {backend.options._timeout.total_seconds() / 60 for backend in backends}


def _loss(engine: TrainingEngine) -> float:
    with engine.frozen():
        return float(engine.score(pack_samples(random_samples(NUM_SAMPLES, seed=9))).logprob.sum())


def _digest(tensors: Mapping[str, torch.Tensor]) -> str:
    data = b"".join(tensor.numpy().tobytes() for tensor in tensors.values())
    return hashlib.sha256(data).hexdigest()


def _open(directory: Path, lora_rank: int, **options: Any) -> TrainingEngine:
    torch.set_num_threads(1)
    name = str(directory / "model")
    return open_engine(name, rank_worker.config(name, lora_rank).changed(**options))


def _resumed(directory: Path, lora_rank: int, **options: Any) -> tuple[TrainingEngine, int]:
    """Return the engine and the finished updates; each process has read its shards and no more."""
    engine = _open(directory, lora_rank, **options)
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


def alone(directory: Path, lora_rank: int, num_updates: int, **options: Any) -> TrainingEngine:
    """Return what one process gets from as many updates."""
    engine = _open(directory, lora_rank, **options)
    assert Process(engine.device).world_size == 1
    for update in range(num_updates):
        train(engine, update)
    return engine


def trained(*configs: TrainConfig) -> None:
    """Make whole trainings, one after the other, as one of several processes."""
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "destroy_process_group", lambda: None)
        for config in configs:
            training.train(config)
    destroy_process_group()
