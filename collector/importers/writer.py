"""Write imported trajectories: each whole or not at all, one recorder at a time."""

import warnings
from collections.abc import Mapping
from typing import Any

from graphcredit.collector.importers.steps import ImportedTrajectory
from graphcredit.collector.recording.known_trajectories import KnownTrajectories
from graphcredit.collector.recording.recorder import StepRecorder
from graphcredit.store.errors import StepRefusedError
from graphcredit.store.layout import Store

WORKER = "import"
"""The worker that imported steps are recorded by; so a store has one import at a time."""


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
        if made.verdict.success is None and self._is_there(made):
            return False
        before = recorder.num_already_there
        try:
            with recorder.together() as group:
                trajectory = group.trajectory(
                    task_id=made.task_id, trajectory_id=made.trajectory_id
                )
                for step in made.steps:
                    trajectory.log(**step)
        except StepRefusedError as error:
            if "may be logged again only with the same steps" not in str(error):
                raise
            raise StepRefusedError(
                f"{error}. If the log was imported before with other options, import it into "
                "another --run or store"
            ) from None
        return recorder.num_already_there == before

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
        """Return whether the store has a trajectory without an end, which cannot be logged again.

        Raises:
            StepRefusedError: It has other steps under this id.
        """
        assert self._known is not None
        known = self._known.find(made.trajectory_id)
        if known is None:
            return False
        if list(map(_brief, known.rows)) != list(map(_brief, made.steps)):
            raise StepRefusedError(
                f"trajectory {made.trajectory_id!r} is in {known.where} with other steps. If the "
                "log was imported before with other options, import it into another --run or store"
            )
        return True

    def close(self) -> None:
        """Write every step to a shard."""
        if self._recorder is not None:
            with warnings.catch_warnings():
                # The report has the number of trajectories that were there.
                warnings.simplefilter("ignore")
                self._recorder.close()
            self._recorder = None


def _brief(step: Mapping[str, Any]) -> tuple[Any, ...]:
    return step["state"], step["action"], step["next_state"], step["reward"], step.get("success")
