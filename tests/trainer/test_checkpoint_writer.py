"""Checkpoints in the background: of the state when they were asked for, one after the other."""

import errno
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from graphcredit.trainer.engine.distributed import Process
from graphcredit.trainer.engine.engine import EngineState
from graphcredit.trainer.output import checkpoint_writer
from graphcredit.trainer.output.checkpoint import latest_checkpoint
from graphcredit.trainer.output.checkpoint_writer import CheckpointWriter
from graphcredit.trainer.training import train
from tests.trainer import rank_worker
from tests.trainer.logs import random_episodes, token_store
from tests.trainer.models import save_tiny_model

ALONE = Process(torch.device("cpu"))


def _writer(directory: Path, *, keep: int = 2) -> CheckpointWriter:
    return CheckpointWriter(ALONE, directory, keep=keep, in_background=True)


def _latest(directory: Path) -> tuple[int, torch.Tensor]:
    found, notices = latest_checkpoint(ALONE, directory, rank_worker.IDENTITY)
    assert found is not None
    assert notices == []
    weights = torch.zeros(3)
    found.read(ALONE, {"w": weights})
    return found.progress.update, weights


def test_what_is_written_is_the_state_when_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    has_changed = threading.Event()
    save = checkpoint_writer.save_checkpoint

    def late(*args: Any, **options: Any) -> Path:
        assert has_changed.wait(10)
        return save(*args, **options)

    monkeypatch.setattr(checkpoint_writer, "save_checkpoint", late)
    weights = torch.ones(3)
    writer = _writer(tmp_path)
    writer.save(EngineState(weights={"w": weights}, optimizer={}), rank_worker.progress(1))
    weights += 1
    has_changed.set()
    writer.save(EngineState(weights={"w": weights}, optimizer={}), rank_worker.progress(2))
    # The second one waited for the first.
    assert (tmp_path / "update-000001").is_dir()
    writer.close()
    assert _latest(tmp_path)[0] == 2
    assert torch.equal(_latest(tmp_path)[1], torch.full((3,), 2.0))
    (tmp_path / "update-000002" / "checkpoint.json").unlink()
    found, notices = latest_checkpoint(ALONE, tmp_path, rank_worker.IDENTITY)
    assert found is not None
    assert len(notices) == 1
    first = torch.zeros(3)
    found.read(ALONE, {"w": first})
    assert torch.equal(first, torch.ones(3))


def test_a_full_disk_is_an_error_of_the_next_checkpoint_or_of_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    state = EngineState(weights={"w": torch.ones(3)}, optimizer={})
    writer = _writer(tmp_path)
    writer.save(state, rank_worker.progress(1))
    writer.close()

    def full(*_: Any, **__: Any) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device", "x")

    monkeypatch.setattr(checkpoint_writer, "save_checkpoint", full)
    writer = _writer(tmp_path)
    writer.save(state, rank_worker.progress(2))
    with pytest.raises(OSError, match="No space left"):
        writer.save(state, rank_worker.progress(3))
    writer.save(state, rank_worker.progress(4))
    with pytest.raises(OSError, match="No space left"):
        writer.close()
    assert _latest(tmp_path)[0] == 1


def test_a_training_leaves_the_same_numbers_either_way(tmp_path: Path):
    token_store(tmp_path / "s", random_episodes(0, 4))
    model = save_tiny_model(tmp_path / "m")
    config = rank_worker.config(model, 0).changed(
        store=tmp_path / "s",
        mismatch_sample=0,
        batch_size=3,
        max_tokens=64,
        tensorboard=False,
        checkpoint_every=1,
    )
    for name, in_background in (("before", False), ("beside", True)):
        train(config.changed(out=tmp_path / name, background_checkpoints=in_background))
    before, beside = (
        {
            str(path.relative_to(tmp_path / name)): load_file(path)
            for path in (tmp_path / name).rglob("*.safetensors")
        }
        for name in ("before", "beside")
    )
    assert len(before) == 3
    assert before.keys() == beside.keys()
    for file, tensors in before.items():
        assert tensors.keys() == beside[file].keys()
        assert all(torch.equal(each, beside[file][name]) for name, each in tensors.items())


def test_the_thread_has_the_gpu_of_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The fourth of a machine: a thread would begin with the first."""
    chosen: list[tuple[str, int]] = []

    def choose(device: int) -> None:
        chosen.append((threading.current_thread().name, device))

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    monkeypatch.setattr(torch.cuda, "set_device", choose)
    writer = _writer(tmp_path)
    writer.save(EngineState(weights={"w": torch.ones(3)}, optimizer={}), rank_worker.progress(1))
    writer.close()
    assert chosen == [("checkpoint_0", 3)]
    assert _latest(tmp_path)[0] == 1
