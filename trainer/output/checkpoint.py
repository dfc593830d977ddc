"""Checkpoints: written atomically, with hashes that reveal damage."""

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor

from graphcredit.store.errors import InputError, TrainingError
from graphcredit.store.files.atomic import TEMPORARY_SUFFIX, atomic_directory, remove_directory
from graphcredit.trainer.engine.engine import EngineState
from graphcredit.trainer.fingerprint import Identity, describe

_DESCRIPTION = "checkpoint.json"
_WEIGHTS = "model.safetensors"
_OPTIMIZER = "optimizer.safetensors"
_NAME = re.compile(r"update-(\d{6,})")


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """Progress of a training. Together with the plan, it determines the next steps to read."""

    update: int
    """Number of finished optimizer steps."""
    identity: Mapping[str, str]
    """Fingerprint of the training, from `Identity.as_json`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint:
    """A checkpoint on disk whose hashes match."""

    path: Path
    progress: Progress

    def read(self) -> EngineState:
        """Return the state, on the CPU."""
        return EngineState(
            weights=load_file(self.path / _WEIGHTS), optimizer=load_file(self.path / _OPTIMIZER)
        )


def save_checkpoint(directory: Path, state: EngineState, progress: Progress, *, keep: int) -> Path:
    """Write a checkpoint `update-<number>/` and remove the oldest ones.

    Only one process may call it, the one with the whole state. A kill at any moment leaves the
    existing checkpoints readable. If the checkpoint exists undamaged, it is not written again.

    Args:
        directory: Directory of the checkpoints.
        state: Weights and optimizer state to save.
        progress: Progress of the training at this state. Checkpoints of later updates are removed,
            because the training resumed from an earlier one.
        keep: Number of checkpoints to keep, at least 1.

    Returns:
        The path of the checkpoint.
    """
    path = directory / f"update-{progress.update:06d}"
    for left_over in directory.glob(f"*{TEMPORARY_SUFFIX}"):
        shutil.rmtree(left_over)
    if _verify(path)[0] != progress:
        _write(path, state, progress)
    found = _numbered(directory)
    later = [number for number in found if number > progress.update]
    earlier = [number for number in found if number <= progress.update]
    for number in (*later, *earlier[:-keep]):
        remove_directory(found[number])
    return path


def latest_checkpoint(
    directory: Path, identity: Identity, *, may_restart: bool = False
) -> tuple[Checkpoint | None, list[str]]:
    """Return the newest checkpoint that is undamaged, and a notice about each that is damaged.

    Args:
        directory: Directory of the checkpoints; it need not exist.
        identity: Fingerprint of the training that resumes.
        may_restart: If all checkpoints are damaged, return None instead of an error.

    Returns:
        The checkpoint, or None without one; and the notices.

    Raises:
        InputError: The newest undamaged checkpoint belongs to another training.
        TrainingError: All checkpoints are damaged.
    """
    found, notices = _newest(directory)
    if found is None and notices and not may_restart:
        raise TrainingError(
            f"a training that was interrupted must go on from a checkpoint, but none of the "
            f"{len(notices)} in {directory} is whole: {'; '.join(notices)}. Bring one back from a "
            "copy; or begin anew from the model, and lose what was learnt, with `graphcredit train "
            f"--restart`, or by removing {directory}"
        )
    if found is not None:
        identity.refuse_other(found.progress.identity, found.path)
    return found, notices


def read_optimizer(directory: Path) -> dict[str, Tensor]:
    """Return the optimizer state of the newest checkpoint of any training.

    An older checkpoint is no substitute: its moments do not belong to the saved weights.

    Args:
        directory: Directory of the checkpoints in the output of a training.

    Raises:
        InputError: There is no checkpoint, or the newest one is damaged.
    """
    found, notices = _newest(directory)
    if found is None and not notices:
        raise InputError(
            f"{directory} must hold a checkpoint whose optimizer state is taken over: found none"
        )
    if found is None or notices:
        out = directory.parent
        raise InputError(
            f"the newest checkpoint in {directory} must be whole, so that its optimizer state can "
            f"be taken over: {notices[0]}. To make it again, remove {out / 'result.json'} and run "
            f"`graphcredit train --config {out / 'config.toml'}`: that works as long as what it "
            "went on from has its own checkpoint, which within a loop it has not. Without "
            f"--continue-from, or in another loop from {out / 'model'}, the optimizer begins anew"
        )
    return load_file(found.path / _OPTIMIZER)


def _newest(directory: Path) -> tuple[Checkpoint | None, list[str]]:
    notices: list[str] = []
    for _, path in sorted(_numbered(directory).items(), reverse=True):
        progress, fault = _verify(path)
        if progress is not None:
            return Checkpoint(path=path, progress=progress), notices
        notices.append(f"checkpoint {path} is damaged and not used: {fault}")
    return None, notices


def _numbered(directory: Path) -> dict[int, Path]:
    """Return the checkpoints by number, ascending."""
    paths = directory.iterdir() if directory.is_dir() else ()
    matches = ((_NAME.fullmatch(path.name), path) for path in paths)
    return dict(sorted((int(match[1]), path) for match, path in matches if match))


def _write(path: Path, state: EngineState, progress: Progress) -> None:
    with atomic_directory(path) as temporary:
        _save_tensors(state.weights, temporary / _WEIGHTS)
        _save_tensors(state.optimizer, temporary / _OPTIMIZER)
        files = {name: describe(temporary / name) for name in (_WEIGHTS, _OPTIMIZER)}
        text = json.dumps({**asdict(progress), "files": files}, indent=2) + "\n"
        (temporary / _DESCRIPTION).write_text(text, encoding="utf-8")


def _save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)


def _verify(path: Path) -> tuple[Progress | None, str]:
    """Return the progress, or None and the fault of the checkpoint."""
    try:
        description = json.loads((path / _DESCRIPTION).read_text(encoding="utf-8"))
        files = description.pop("files")
        progress = Progress(**description)
        for name in (_WEIGHTS, _OPTIMIZER):
            if describe(path / name) != files[name]:
                return None, f"{name} is not what was written (size or sha256)"
    except FileNotFoundError as error:
        return None, f"{Path(error.filename).name} is missing"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return None, f"it cannot be read ({error})"
    return progress, ""
