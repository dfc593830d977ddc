"""Saves the checkpoints of a training, where asked for in a thread while the training goes on."""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import torch
from torch import Tensor

from graphcredit.trainer.engine.distributed import Process, share_gpu
from graphcredit.trainer.engine.engine import EngineState
from graphcredit.trainer.engine.sharding import copied
from graphcredit.trainer.output.checkpoint import Progress, save_checkpoint


class CheckpointWriter:
    """Saves checkpoints one after the other; all processes call the same methods.

    In the background a checkpoint is written from a copy, by `save_checkpoint` itself: a kill at
    any moment leaves the existing ones readable. The next one waits until it is there.
    """

    def __init__(self, process: Process, directory: Path, *, keep: int, in_background: bool):
        """Save nothing yet.

        Args:
            process: This one among the processes; with exchanges of its own in the background.
            directory: Directory of the checkpoints.
            keep: Number of checkpoints to keep, at least 1.
            in_background: Whether `save` returns when the state is copied.
        """
        self._process, self._directory, self._keep = process, directory, keep
        self._thread = (
            ThreadPoolExecutor(1, "checkpoint", initializer=share_gpu()) if in_background else None
        )
        self._pending: Future[Path] | None = None

    def save(self, state: EngineState, progress: Progress) -> None:
        """Save a state, or begin to.

        Raises:
            OSError: This one or the one before could not be written.
        """
        if self._thread is None:
            save_checkpoint(self._process, self._directory, state, progress, keep=self._keep)
            return
        self._wait()
        copy = EngineState(weights=_copies(state.weights), optimizer=_copies(state.optimizer))
        self._pending = self._thread.submit(
            save_checkpoint, self._process, self._directory, copy, progress, keep=self._keep
        )

    def close(self) -> None:
        """Wait until all is written.

        Raises:
            OSError: It could not be.
        """
        try:
            self._wait()
        finally:
            if self._thread is not None:
                self._thread.shutdown()

    def _wait(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()


def _copies(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: copied(each, each, torch.device("cpu")) for name, each in tensors.items()}
