"""Write several trajectories atomically: all of them, or none."""

from collections.abc import Callable, Mapping
from typing import Any

from graphcredit.collector.recording.trajectory import Trajectory


class Drafts:
    """A sink that keeps the steps of trajectories in memory."""

    rows: list[dict[str, Any]]
    """All steps, in the order of logging."""

    def __init__(self) -> None:
        """Start without steps."""
        self.rows = []
        self._last: dict[str, dict[str, Any]] = {}

    def append(self, row: dict[str, Any], *, is_last: bool) -> None:
        """Add a step."""
        self.rows.append(row)
        self._last[row["trajectory_id"]] = row

    def end(self, trajectory_id: str, end: Mapping[str, bool]) -> None:
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
