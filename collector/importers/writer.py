"""Write imported trajectories: each whole or not at all, one recorder at a time."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphcredit.collector.importers.steps import ImportedTrajectory
from graphcredit.collector.recording.known_trajectories import KnownTrajectories
from graphcredit.collector.recording.recorder import StepRecorder
from graphcredit.store.errors import StepRefusedError
from graphcredit.store.layout import Store

WORKER = "import"
"""The worker that imported steps are recorded by; so a store has one import at a time."""

_COMPARED = (
    *("state", "action", "next_state", "reward", "success", "observation", "thought"),
    *("is_action_valid", "prompt_ids", "response_ids", "top_k", "policy_version", "extra"),
)
"""Columns by which a step of the store is the same."""

_ROUNDED = ("response_logprobs", "temperature", "top_p")
"""Columns that the store rounds to 32 bits."""


class Writer:
    """Records trajectories of any runs and iterations. Close it to write the last shard."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._recorder: StepRecorder | None = None
        self._key: tuple[str, int] | None = None
        self._known: KnownTrajectories | None = None

    def write(self, made: ImportedTrajectory) -> bool:
        """Record a trajectory.

        Returns:
            Whether it is new. The store may have it with the same steps.

        Raises:
            StepRefusedError: A value breaks a rule, or the store has other steps under its id.
            RecorderError: Writing failed.
        """
        recorder = self._recorder_of(made.run_id, made.iteration)
        if self._is_there(made):
            return False
        with recorder.together() as group:
            trajectory = group.trajectory(task_id=made.task_id, trajectory_id=made.trajectory_id)
            for step in made.steps:
                trajectory.log(**step)
        return True

    def _recorder_of(self, run_id: str, iteration: int) -> StepRecorder:
        if self._recorder is None or self._key != (run_id, iteration):
            self.close()
            self._recorder = StepRecorder(
                self._store, run_id=run_id, iteration=iteration, worker_id=WORKER
            )
            self._known = KnownTrajectories(
                self._store, run_id=run_id, iteration=iteration, worker_id=WORKER
            )
            self._key = run_id, iteration
        return self._recorder

    def _is_there(self, made: ImportedTrajectory) -> bool:
        """Return whether the store has a trajectory.

        The recorder knows that too, but it compares step by step, and refuses a trajectory without
        an end.

        Raises:
            StepRefusedError: The store has other steps under its id.
        """
        assert self._known is not None
        known = self._known.find(made.trajectory_id)
        if known is None:
            return False
        there = [_compared(row["task_id"], row) for row in known.rows]
        if there != [_compared(made.task_id, step) for step in made.steps]:
            raise StepRefusedError(
                f"the store may have a trajectory only with the same steps: {made.trajectory_id!r} "
                f"is in {known.where} with others. If the log was imported before with other "
                "options, import it into another --run or store"
            )
        return True

    def close(self) -> None:
        """Write every step to a shard."""
        if self._recorder is not None:
            self._recorder.close()
            self._recorder = None


def _compared(task_id: str, step: Mapping[str, Any]) -> list[Any]:
    rounded = (step.get(name) for name in _ROUNDED)
    return [
        task_id,
        *(step.get(name) for name in _COMPARED),
        *(None if value is None else np.float32(value).tolist() for value in rounded),
    ]
