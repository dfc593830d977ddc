"""Checkpoints: killed between any two steps, damaged in every way, and resumed to the bit."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from safetensors.torch import load_file

from graphcredit.store.errors import InputError, TrainingError
from graphcredit.store.files import atomic
from graphcredit.trainer.engine.distributed import Process
from graphcredit.trainer.engine.engine import EngineState
from graphcredit.trainer.engine.opening import open_engine
from graphcredit.trainer.output import checkpoint, sharded_tensors
from graphcredit.trainer.output.checkpoint import (
    Checkpoint,
    Progress,
    latest_checkpoint,
    newest_of_all,
    save_checkpoint,
)
from tests.trainer import rank_worker, shard_worker
from tests.trainer.models import save_tiny_model

ALONE = Process(torch.device("cpu"))


def _state(value: float) -> EngineState:
    tensor = torch.full((3, 2), float(value))
    moments = {"w.step": torch.tensor(float(value)), "w.exp_avg": tensor + 1}
    return EngineState(weights={"w": tensor}, optimizer=moments)


def _save(directory: Path, update: int, keep: int = 2) -> Path:
    progress = rank_worker.progress(update)
    return save_checkpoint(ALONE, directory, _state(update), progress, keep=keep)


def _latest(directory: Path) -> tuple[Checkpoint | None, list[str]]:
    return latest_checkpoint(ALONE, directory, rank_worker.IDENTITY)


def _read(found: Checkpoint) -> dict[str, torch.Tensor]:
    into = {name: torch.zeros(shape) for name, shape in found.shapes().items()}
    found.read(ALONE, into)
    return into


def _shard(path: Path) -> Path:
    (shard,) = path.glob("*.safetensors")
    return shard


def _updates(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_what_is_saved_is_read_again(tmp_path: Path):
    assert _latest(tmp_path / "nowhere") == (None, [])
    path = _save(tmp_path / "checkpoints", 7)
    found, notices = _latest(tmp_path / "checkpoints")
    assert found == Checkpoint(path=path, progress=rank_worker.progress(7))
    assert notices == []
    state = _read(found)
    assert state.keys() == {"w", "w.step", "w.exp_avg"}
    assert torch.equal(state["w"], torch.full((3, 2), 7.0))
    assert torch.equal(state["w.exp_avg"], torch.full((3, 2), 8.0))
    assert state["w.step"].item() == 7.0
    description = json.loads((path / "checkpoint.json").read_text())
    assert description.pop("files").keys() == {"shard-00001-model-00001-of-00001.safetensors"}
    assert Progress(**description) == rank_worker.progress(7)


def test_the_last_ones_are_kept_and_later_ones_go_so_that_the_new_one_is_the_latest(tmp_path: Path):
    """Damaged ones of a given-up future must not push out what was just written."""
    for update in (10, 20, 30, 40):
        _save(tmp_path, update, keep=3)
    assert _updates(tmp_path) == ["update-000020", "update-000030", "update-000040"]
    _save(tmp_path, 30, keep=1)
    assert _updates(tmp_path) == ["update-000030"]


class _KilledError(Exception):
    """Stands for the end of the process."""


def _killed_at(monkeypatch: pytest.MonkeyPatch, number: int, save: Callable[[], Any]) -> bool:
    """Run `save`, ending it at its `number`-th step on disk; return whether it was ended."""
    calls = 0

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls > number:
                raise _KilledError
            return function(*args, **kwargs)

        return step

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", wrap(os.replace))
        patch.setattr(os, "fsync", wrap(os.fsync))
        patch.setattr(checkpoint, "write_tensors", wrap(checkpoint.write_tensors))
        patch.setattr(safetensors.torch, "save", wrap(safetensors.torch.save))
        # A killed process cleans nothing up.
        patch.setattr(atomic.shutil, "rmtree", wrap(atomic.shutil.rmtree))
        try:
            save()
        except _KilledError:
            return True
    return False


@pytest.mark.parametrize("keep", [1, 2])
def test_a_kill_between_any_two_steps_leaves_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: int
):
    seen: list[int] = []
    for number in range(100):
        directory = tmp_path / str(number)
        _save(directory, 10, keep)
        (directory / "notes.tmp").write_text("somebody else's")
        _save(directory, 20, keep)
        was_killed = _killed_at(monkeypatch, number, lambda d=directory: _save(d, 30, keep))
        found, notices = _latest(directory)
        assert found is not None
        assert notices == []
        assert torch.all(_read(found)["w"] == found.progress.update)
        seen.append(found.progress.update)
        _save(directory, 30, keep)
        assert _updates(directory)[-1] == "update-000030"
        assert [path.name for path in directory.glob("*.tmp")] == ["notes.tmp"]
        if not was_killed:
            break
    assert len(seen) > 8
    assert seen == sorted(seen)
    assert {*seen} == {20, 30}


def test_a_kill_while_a_checkpoint_is_replaced_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for number in range(100):
        directory = tmp_path / str(number)
        _save(directory, 10)
        damaged = _shard(_save(directory, 20))
        damaged.write_bytes(damaged.read_bytes()[:-1])
        if not _killed_at(monkeypatch, number, lambda d=directory: _save(d, 20)):
            break
        found, _ = _latest(directory)
        assert found is not None
    assert number > 8


def test_saving_the_same_update_twice_risks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    _save(tmp_path, 10, keep=1)
    assert not _killed_at(monkeypatch, 0, lambda: _save(tmp_path, 10, keep=1))


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("name", ["shard", "checkpoint.json"])
@pytest.mark.parametrize("damage", [_truncate, _flip, Path.unlink])
def test_a_damaged_checkpoint_is_passed_over_loudly(
    tmp_path: Path, name: str, damage: Callable[[Path], None]
):
    _save(tmp_path, 10)
    path = _save(tmp_path, 20)
    if (name, damage) == ("checkpoint.json", _truncate):
        (path / name).write_text((path / name).read_text()[:-3])
    elif (name, damage) == ("checkpoint.json", _flip):
        _edit(path, files={})
    else:
        damage(_shard(path) if name == "shard" else path / name)
    found, notices = _latest(tmp_path)
    assert found is not None
    assert found.progress.update == 10
    assert len(notices) == 1
    assert "update-000020 is damaged" in notices[0]


def test_an_optimizer_is_taken_over_from_the_newest_checkpoint_alone(tmp_path: Path):
    """Update 10 has other moments than the weights that were saved after update 20."""
    directory = tmp_path / "out" / "checkpoints"
    with pytest.raises(InputError, match=r"must hold a checkpoint .* found none"):
        newest_of_all(ALONE, directory)
    _save(directory, 10)
    newest = _save(directory, 20)
    assert _read(newest_of_all(ALONE, directory))["w.step"] == 20.0
    _flip(_shard(newest))
    with pytest.raises(InputError, match=r"update-000020 is damaged .*remove .*out/result\.json"):
        newest_of_all(ALONE, directory)


def test_checkpoints_that_are_all_damaged_are_refused(tmp_path: Path):
    _flip(_shard(_save(tmp_path, 10)))
    _truncate(_shard(_save(tmp_path, 20)))
    with pytest.raises(TrainingError, match=r"none of the 2 in .* is whole: .*remove .* anew"):
        _latest(tmp_path)


def _edit(path: Path, **changes: Any) -> None:
    description = path / "checkpoint.json"
    description.write_text(json.dumps({**json.loads(description.read_text()), **changes}))


@pytest.mark.parametrize("what", rank_worker.IDENTITY.as_json())
def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path, what: str):
    _edit(_save(tmp_path, 10), identity={**rank_worker.IDENTITY.as_json(), what: "another"})
    with pytest.raises(InputError, match=f"must be of the {what} that is given now"):
        _latest(tmp_path)


@pytest.mark.parametrize("lora_rank", [0, 4])
def test_two_updates_and_two_more_are_four_in_a_row(tmp_path: Path, lora_rank: int):
    """A state of another model, from before its first update, is refused and changes nothing."""
    name = save_tiny_model(tmp_path / "model")
    options = rank_worker.config(name, lora_rank)
    straight = open_engine(name, options)
    norms = [shard_worker.train(straight, update) for update in range(4)]
    first = open_engine(name, options)
    for update in range(2):
        shard_worker.train(first, update)
    save_checkpoint(first, tmp_path / "out", first.state(), rank_worker.progress(2), keep=1)
    second = open_engine(name, options)
    other = EngineState(weights={"w": torch.zeros(1)}, optimizer={})
    save_checkpoint(ALONE, tmp_path / "other", other, rank_worker.progress(0), keep=1)
    with pytest.raises(InputError, match=r"is \(\d+, \d+\): found None"):
        second.load_state(rank_worker.newest(ALONE, tmp_path / "other"))
    second.load_state(rank_worker.newest(ALONE, tmp_path / "out"))
    assert [shard_worker.train(second, update) for update in (2, 3)] == norms[2:]
    for ours, theirs in (
        (second.state().weights, straight.state().weights),
        (second.state().optimizer, straight.state().optimizer),
    ):
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_a_shard_of_many_tensors_is_written_in_files_of_bounded_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Tensors of 40 bytes in files of 100: two in each; one of 400 has a file of its own."""
    monkeypatch.setattr(sharded_tensors, "FILE_BYTES", 100)
    weights = {f"w{n}": torch.full((10,), float(n)) for n in range(5)}
    weights |= {"large": torch.ones(100), "last": torch.zeros(1)}
    state = EngineState(weights=weights, optimizer={})
    path = save_checkpoint(ALONE, tmp_path, state, rank_worker.progress(1), keep=1)
    sizes = {file.name: len(load_file(file)) for file in sorted(path.glob("*.safetensors"))}
    assert [*sizes.values()] == [2, 2, 1, 1, 1]
    found, _ = _latest(tmp_path)
    assert found is not None
    read = _read(found)
    assert all(torch.equal(read[name], value) for name, value in weights.items())


def test_a_full_disk_is_an_error_of_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "x")

    _save(tmp_path, 10)
    with monkeypatch.context() as patch:
        patch.setattr(safetensors.torch, "save", full)
        with pytest.raises(OSError, match="No space left"):
            _save(tmp_path, 20)
    assert _updates(tmp_path) == ["update-000010"]
