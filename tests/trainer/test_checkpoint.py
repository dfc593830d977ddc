"""Checkpoints: killed between any two steps, damaged in every way, and resumed to the bit."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from graphcredit.store.errors import InputError, TrainingError
from graphcredit.store.files import atomic
from graphcredit.trainer.engine.engine import EngineState, open_engine
from graphcredit.trainer.output import checkpoint
from graphcredit.trainer.output.checkpoint import (
    Checkpoint,
    Progress,
    latest_checkpoint,
    read_optimizer,
    save_checkpoint,
)
from tests.trainer import rank_worker
from tests.trainer.models import save_tiny_model


def _state(value: float) -> EngineState:
    tensor = torch.full((3, 2), value)
    return EngineState(weights={"w": tensor}, optimizer={"w.step": torch.tensor(value)})


def _save(directory: Path, update: int, keep: int = 2) -> Path:
    return save_checkpoint(directory, _state(update), rank_worker.progress(update), keep=keep)


def _latest(directory: Path) -> tuple[Checkpoint | None, list[str]]:
    return latest_checkpoint(directory, rank_worker.IDENTITY)


def _updates(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_what_is_saved_is_read_again(tmp_path: Path):
    path = _save(tmp_path / "checkpoints", 7)
    found, notices = _latest(tmp_path / "checkpoints")
    assert found == Checkpoint(path=path, progress=rank_worker.progress(7))
    assert notices == []
    state = found.read()
    assert torch.equal(state.weights["w"], torch.full((3, 2), 7.0))
    assert state.optimizer["w.step"].item() == 7.0


def test_without_checkpoints_there_is_none(tmp_path: Path):
    assert _latest(tmp_path / "nowhere") == (None, [])


def test_a_state_before_the_first_update_is_saved_too(tmp_path: Path):
    empty = EngineState(weights={"w": torch.zeros(1)}, optimizer={})
    save_checkpoint(tmp_path, empty, rank_worker.progress(0), keep=1)
    found, _ = _latest(tmp_path)
    assert found is not None
    assert found.read().optimizer == {}


def test_the_last_ones_are_kept(tmp_path: Path):
    for update in (10, 20, 30, 40):
        _save(tmp_path, update, keep=2)
    assert _updates(tmp_path) == ["update-000030", "update-000040"]


def test_later_checkpoints_go_so_that_the_new_one_is_the_latest(tmp_path: Path):
    """Damaged ones of a given-up future must not push out what was just written."""
    for update in (10, 20, 30):
        _save(tmp_path, update, keep=3)
    _save(tmp_path, 20, keep=1)
    assert _updates(tmp_path) == ["update-000020"]


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
        patch.setattr(checkpoint, "save_file", wrap(checkpoint.save_file))
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
        _save(directory, 20, keep)
        was_killed = _killed_at(monkeypatch, number, lambda d=directory: _save(d, 30, keep))
        found, notices = _latest(directory)
        assert found is not None
        assert notices == []
        assert torch.all(found.read().weights["w"] == found.progress.update)
        seen.append(found.progress.update)
        _save(directory, 30, keep)
        assert _updates(directory)[-1] == "update-000030"
        assert not list(directory.glob("*.tmp"))
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
        damaged = _save(directory, 20) / "model.safetensors"
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


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "checkpoint.json"])
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
        damage(path / name)
    found, notices = _latest(tmp_path)
    assert found is not None
    assert found.progress.update == 10
    assert len(notices) == 1
    assert "update-000020 is damaged" in notices[0]


def test_an_optimizer_is_taken_over_from_the_newest_checkpoint_alone(tmp_path: Path):
    """Update 10 has other moments than the weights that were saved after update 20."""
    directory = tmp_path / "out" / "checkpoints"
    with pytest.raises(InputError, match=r"must hold a checkpoint .* found none"):
        read_optimizer(directory)
    _save(directory, 10)
    newest = _save(directory, 20)
    assert read_optimizer(directory) == {"w.step": torch.tensor(20.0)}
    _flip(newest / "optimizer.safetensors")
    with pytest.raises(InputError, match=r"update-000020 is damaged .*remove .*out/result\.json"):
        read_optimizer(directory)


def test_checkpoints_that_are_all_damaged_are_none_only_where_that_is_asked_for(tmp_path: Path):
    _flip(_save(tmp_path, 10) / "model.safetensors")
    _truncate(_save(tmp_path, 20) / "optimizer.safetensors")
    with pytest.raises(TrainingError, match=r"none of the 2 in .* is whole: .*--restart"):
        _latest(tmp_path)
    found, notices = latest_checkpoint(tmp_path, rank_worker.IDENTITY, may_restart=True)
    assert found is None
    assert "optimizer.safetensors is not what was written" in notices[0]
    assert "model.safetensors is not what was written" in notices[1]


def _edit(path: Path, **changes: Any) -> None:
    description = path / "checkpoint.json"
    description.write_text(json.dumps({**json.loads(description.read_text()), **changes}))


@pytest.mark.parametrize(
    "what",
    ["plan", "configuration", "model", "reference", "arithmetic"],
)
def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path, what: str):
    _edit(_save(tmp_path, 10), identity={**rank_worker.IDENTITY.as_json(), what: "another"})
    with pytest.raises(InputError, match=f"must be of the {what} that is given now"):
        _latest(tmp_path)


def test_a_checkpoint_from_before_the_arithmetic_was_recorded_is_gone_on_with(tmp_path: Path):
    identity = rank_worker.IDENTITY.as_json()
    del identity["arithmetic"]
    _edit(_save(tmp_path, 10), identity=identity)
    found, _ = _latest(tmp_path)
    assert found is not None
    del identity["plan"]
    _edit(found.path, identity=identity)
    with pytest.raises(InputError, match="must be of the plan"):
        _latest(tmp_path)


def test_a_state_of_another_model_is_refused(tmp_path: Path):
    name = save_tiny_model(tmp_path)
    engine = open_engine(name, rank_worker.config(name, 0))
    with pytest.raises(InputError, match=r"embed_tokens.weight is \(97, 64\): found None"):
        engine.load_state(_state(1.0))


@pytest.mark.parametrize("lora_rank", [0, 4])
def test_three_updates_and_three_more_are_six_in_a_row(tmp_path: Path, lora_rank: int):
    name = save_tiny_model(tmp_path / "model")
    options = rank_worker.config(name, lora_rank)
    straight = open_engine(name, options)
    norms = [rank_worker.train(straight, update) for update in range(6)]
    first = open_engine(name, options)
    for update in range(3):
        rank_worker.train(first, update)
    save_checkpoint(tmp_path / "out", first.state(), rank_worker.progress(3), keep=1)
    second = open_engine(name, options)
    second.load_state(rank_worker.newest(tmp_path / "out").read())
    assert [rank_worker.train(second, update) for update in range(3, 6)] == norms[3:]
    for ours, theirs in (
        (second.state().weights, straight.state().weights),
        (second.state().optimizer, straight.state().optimizer),
    ):
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_progress_says_what_it_belongs_to(tmp_path: Path):
    _save(tmp_path, 12)
    description = json.loads((tmp_path / "update-000012/checkpoint.json").read_text())
    assert description.pop("files").keys() == {"model.safetensors", "optimizer.safetensors"}
    assert Progress(**description) == rank_worker.progress(12)
