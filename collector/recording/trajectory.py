"""Handles of trajectories that are being recorded: log the steps of one, then its end.

Several may be written together: all of them, or none.
"""

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Protocol, Self

from graphcredit.collector.recording.validation import check_step, check_value
from graphcredit.collector.recording.worker_lock import ProcessLock
from graphcredit.store.errors import StepRefusedError


class Sink(Protocol):
    """Receives the steps of trajectories: a journal, a draft, or a comparison."""

    def append(self, row: dict[str, Any], *, is_last: bool) -> None:
        """Add a step. The sink keeps the dict: the caller must not change it."""
        ...

    def end(self, trajectory_id: str, end: Mapping[str, bool | None]) -> None:
        """Mark the last step of a trajectory as its end."""
        ...

    def abandon(self, trajectory_id: str) -> None:
        """Expect no more steps of a trajectory."""
        ...


class Trajectory:
    """One trajectory that is being recorded. `StepRecorder.trajectory` returns one.

    If its `with` block is left without `end`, or by an exception, the trajectory stays incomplete:
    its steps are kept, but get no credit.
    """

    task_id: str
    trajectory_id: str

    def __init__(self, sink: Sink, lock: ProcessLock, task_id: str, trajectory_id: str):
        self.task_id = task_id
        self.trajectory_id = trajectory_id
        self._sink = sink
        self._lock = lock
        self._num_steps = 0
        self._next_state = ""
        self._logged_at = 0
        self._over = ""

    def log(
        self, *, state: str, action: str, next_state: str, reward: float, **columns: Any
    ) -> None:
        """Record one step; once this returns, the step is safe.

        If the store already has this trajectory, the step is compared with the stored one, and
        nothing is written.

        `step_index`, `logged_at` and the ids are filled in. `cost` is 1.0, `is_action_valid` True,
        `terminated` and `truncated` False unless given; other columns are null.

        Args:
            state: Text that identifies the state before the action. It must equal the previous
                step's `next_state`.
            action: The action as the environment received it.
            next_state: Text that identifies the state after the action.
            reward: The environment's reward.
            **columns: Any other column of `steps`. Token ids and log-probabilities are lists or
                1-dimensional numpy arrays, `extra` is a dict or the text of a JSON object, and
                `terminated` or `truncated` with `success` end the trajectory with this step.

        Raises:
            StepRefusedError: A rule is broken. Nothing was written; the trajectory can continue as
                if the step had not been logged.
            RecorderError: Writing failed, or the recorder is closed.
        """
        given = {"state": state, "action": action, "next_state": next_state, "reward": reward}
        try:
            kept = check_step(given | columns)
        except StepRefusedError as error:
            raise self._refused(str(error)) from None
        is_last = bool(kept.get("terminated") or kept.get("truncated"))
        with self._lock:
            self._refuse_if_over("a step")
            self._refuse_broken_chain(kept["state"])
            logged_at = max(self._logged_at, time.time_ns() // 1000)
            row = {
                **kept,
                "task_id": self.task_id,
                "trajectory_id": self.trajectory_id,
                "step_index": self._num_steps,
                "logged_at": logged_at,
            }
            try:
                self._sink.append(row, is_last=is_last)
            except StepRefusedError as error:
                raise self._refused(str(error)) from None
            self._num_steps += 1
            self._next_state = kept["next_state"]
            self._logged_at = logged_at
            if is_last:
                self._over = "it has ended"

    def end(self, *, success: bool | None, truncated: bool = False) -> None:
        """End the trajectory with its latest step; once this returns, the end is safe.

        Args:
            success: Whether the task was accomplished; None where its return is all that is known.
            truncated: Whether a limit ended the trajectory, and not the environment.

        Raises:
            StepRefusedError: The trajectory has ended already, or has no step.
            RecorderError: Writing failed, or the recorder is closed.
        """
        try:
            end = {
                "terminated": not check_value("truncated", truncated),
                "truncated": bool(truncated),
                "success": None if success is None else check_value("success", success),
            }
        except StepRefusedError as error:
            raise self._refused(str(error)) from None
        with self._lock:
            self._refuse_if_over("an end")
            if not self._num_steps:
                raise self._refused("a rollout ends with a step: log one before `end`")
            try:
                self._sink.end(self.trajectory_id, end)
            except StepRefusedError as error:
                raise self._refused(str(error)) from None
            self._over = "it has ended"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            self._sink.abandon(self.trajectory_id)
            self._over = self._over or "its `with` block was left"

    def _refuse_if_over(self, what: str) -> None:
        if self._over:
            raise self._refused(
                f"{what} can be logged only while its rollout is open: {self._over}"
            )

    def _refuse_broken_chain(self, state: str) -> None:
        if self._num_steps and state != self._next_state:
            raise self._refused(
                "state must be the next_state of the step before, "
                f"{self._next_state[:120]!r}: got {state[:120]!r}"
            )

    def _refused(self, rule: str) -> StepRefusedError:
        return StepRefusedError(
            f"{rule} (step {self._num_steps} of rollout {self.trajectory_id!r}, task "
            f"{self.task_id!r}; nothing was written, and the earlier steps are kept)"
        )


class Drafts:
    """A sink that keeps the steps of trajectories in memory."""

    rows: list[dict[str, Any]]

    def __init__(self) -> None:
        self.rows = []
        self._last: dict[str, dict[str, Any]] = {}

    def append(self, row: dict[str, Any], *, is_last: bool) -> None:
        """Add a step."""
        self.rows.append(row)
        self._last[row["trajectory_id"]] = row

    def end(self, trajectory_id: str, end: Mapping[str, bool | None]) -> None:
        """Mark the last step of a trajectory as its end."""
        self._last[trajectory_id].update(end)

    def abandon(self, trajectory_id: str) -> None:
        """Expect no more steps of a trajectory; nothing to release here."""


class Together:
    """Starts trajectories that are written together. `StepRecorder.together` returns one."""

    def __init__(self, begin: Callable[[str, str | None], Trajectory]) -> None:
        self._begin = begin

    def trajectory(self, *, task_id: str, trajectory_id: str | None = None) -> Trajectory:
        """Start a trajectory, as `StepRecorder.trajectory` does.

        When `log` and `end` return, the step is not safe yet. All steps are safe when the `with`
        block of `together` has ended.
        """
        return self._begin(task_id, trajectory_id)
