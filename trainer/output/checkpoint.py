"""Checkpoints: written atomically, each process its shard, with hashes that reveal damage.

Every function here is called by all processes, on a file system that all of them see.
"""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from graphcredit.store.errors import InputError, TrainingError
from graphcredit.store.files.atomic import atomic_directory, remove_directory, remove_left_overs
from graphcredit.store.files.parse import parse_json
from graphcredit.trainer.engine.distributed import Process
from graphcredit.trainer.engine.engine import EngineState
from graphcredit.trainer.fingerprint import Identity, describe
from graphcredit.trainer.output.sharded_tensors import read_tensors, tensor_shapes, write_tensors

_DESCRIPTION = "checkpoint.json"
KEPT = 2
"""Checkpoints that a training keeps: where the newest is damaged, the one before is used."""

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

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Return the whole shape of each tensor: `EngineState.weights` and `.optimizer`."""
        return tensor_shapes(self.path)

    def read(self, process: Process, into: Mapping[str, Tensor]) -> None:
        """Fill tensors of these names and shapes; a process reads only its shards."""
        read_tensors(process, self.path, into)


def save_checkpoint(
    process: Process, directory: Path, state: EngineState, progress: Progress, *, keep: int = KEPT
) -> Path:
    """Write a checkpoint `update-<number>/` and remove the oldest ones.

    A kill of any process at any moment leaves the existing checkpoints readable. If the checkpoint
    exists undamaged, it is not written again.

    Args:
        process: This one among the processes.
        directory: Directory of the checkpoints.
        state: Weights and optimizer state to save.
        progress: Progress of the training at this state. Checkpoints of later updates are removed,
            because the training resumed from an earlier one.
        keep: Number of checkpoints to keep, at least 1.

    Returns:
        The path of the checkpoint.
    """
    path = directory / f"update-{progress.update:06d}"
    if process.rank == 0:
        remove_left_overs(directory, _NAME.fullmatch)
    if _verify(process, path)[0] != progress:
        _write(process, path, state, progress)
    if process.rank == 0:
        numbered = _numbered(directory)
        later = [number for number in numbered if number > progress.update]
        earlier = [number for number in numbered if number <= progress.update]
        for number in (*later, *earlier[:-keep]):
            remove_directory(numbered[number])
    return path


def latest_checkpoint(
    process: Process, directory: Path, identity: Identity
) -> tuple[Checkpoint | None, list[str]]:
    """Return the newest checkpoint that is undamaged, and a notice about each that is damaged.

    Returns:
        The checkpoint, or None without one; and the notices.

    Raises:
        InputError: The newest undamaged checkpoint belongs to another training.
        TrainingError: All checkpoints are damaged.
    """
    checkpoint, notices = _newest(process, directory)
    if checkpoint is None and notices:
        raise TrainingError(
            f"a training that was interrupted must go on from a checkpoint, but none of the "
            f"{len(notices)} in {directory} is whole: {'; '.join(notices)}. Bring one back from a "
            f"copy; or remove {directory} to begin anew from the model, without what was learnt"
        )
    if checkpoint is not None:
        identity.refuse_other(checkpoint.progress.identity, checkpoint.path)
    return checkpoint, notices


def newest_of_all(process: Process, directory: Path) -> Checkpoint:
    """Return the newest checkpoint of any training, whose optimizer state is taken over.

    An older checkpoint is no substitute: its moments do not belong to the saved weights.

    Raises:
        InputError: There is no checkpoint, or the newest one is damaged.
    """
    checkpoint, notices = _newest(process, directory)
    if checkpoint is None and not notices:
        raise InputError(
            f"{directory} must hold a checkpoint whose optimizer state is taken over: found none"
        )
    if checkpoint is None or notices:
        out = directory.parent
        raise InputError(
            f"the newest checkpoint in {directory} must be whole, so that its optimizer state can "
            f"be taken over: {notices[0]}. To make it again, remove {out / 'result.json'} and run "
            f"`graphcredit train --config {out / 'config.toml'}`: that works as long as what it "
            "went on from has its own checkpoint, which within a loop it has not. Without "
            f"--continue-from, or in another loop from {out / 'model'}, the optimizer begins anew"
        )
    return checkpoint


def _newest(process: Process, directory: Path) -> tuple[Checkpoint | None, list[str]]:
    notices: list[str] = []
    numbers = process.broadcast(list(_numbered(directory)))
    for number in reversed(numbers):
        path = directory / f"update-{number:06d}"
        progress, fault = _verify(process, path)
        if progress is not None:
            return Checkpoint(path=path, progress=progress), notices
        notices.append(f"checkpoint {path} is damaged and not used: {fault}")
    return None, notices


def _numbered(directory: Path) -> dict[int, Path]:
    """Return the checkpoints by number, ascending."""
    paths = directory.iterdir() if directory.is_dir() else ()
    matches = ((_NAME.fullmatch(path.name), path) for path in paths)
    return dict(sorted((int(match[1]), path) for match, path in matches if match))


def _write(process: Process, path: Path, state: EngineState, progress: Progress) -> None:
    """Write a checkpoint: the first process gives it its name when all have written their parts."""
    with atomic_directory(path) if process.rank == 0 else nullcontext() as made:
        temporary = Path(process.broadcast(None if made is None else str(made)))
        write_tensors(process, temporary, {**state.weights, **state.optimizer})
        names = process.broadcast(sorted(file.name for file in temporary.iterdir()))
        files = dict(_each(process, names, lambda name: (name, describe(temporary / name))))
        if made is not None:
            text = json.dumps({**asdict(progress), "files": files}, indent=2) + "\n"
            (made / _DESCRIPTION).write_text(text, encoding="utf-8")
    process.barrier()


def _verify(process: Process, path: Path) -> tuple[Progress | None, str]:
    """Return the progress, or None and the fault of the checkpoint; each process hashes a share."""
    description, fault = process.broadcast(_description(path))
    if fault:
        return None, fault
    files = description.pop("files")
    faults = _each(process, list(files), lambda name: _fault(path / name, files[name]))
    if fault := next(filter(None, faults), ""):
        return None, fault
    return Progress(**description), ""


def _description(path: Path) -> tuple[dict[str, Any], str]:
    """Return the description of a checkpoint, or why it cannot be read."""
    try:
        description = parse_json((path / _DESCRIPTION).read_text(encoding="utf-8"))
        Progress(**{k: v for k, v in description.items() if k != "files"})
        if not description["files"]:
            return {}, "it names no files"
    except FileNotFoundError:
        return {}, f"{_DESCRIPTION} is missing"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return {}, f"it cannot be read ({error})"
    return description, ""


def _fault(file: Path, written: Mapping[str, str | int]) -> str:
    """Return how a file differs from the one that was written, or an empty text."""
    try:
        is_sound = describe(file) == written
    except FileNotFoundError:
        return f"{file.name} is missing"
    except OSError as error:
        return f"{file.name} cannot be read ({error})"
    return "" if is_sound else f"{file.name} is not what was written (size or sha256)"


def _each(process: Process, items: list[str], function: Callable[[str], Any]) -> list[Any]:
    """Return a function of each item; each process computes a share of them."""
    mine = [function(item) for item in items[process.rank :: process.world_size]]
    shares = process.gather(mine)
    return [shares[n % len(shares)][n // len(shares)] for n in range(len(items))]
