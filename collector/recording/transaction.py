"""Trajectories that reach the store all at once, or not at all."""

from collections.abc import Callable, Mapping
from typing import Any

from graphcredit.collector.recording.trajectory import Trajectory


class Drafts:
    """Takes the steps of trajectories as a journal does, and keeps them."""

    rows: list[dict[str, Any]]
    """Every step, in the order in which they were logged."""

    def __init__(self) -> None:
        """Hold nothing yet."""
        self.rows = []
        self._last: dict[str, dict[str, Any]] = {}

    def append(self, row: dict[str, Any], *, is_last: bool) -> None:
        """Add a step."""
        self.rows.append(row)
        self._last[row["trajectory_id"]] = row

    def end(self, trajectory_id: str, end: Mapping[str, bool]) -> None:
        """Make the last step of a trajectory its end."""
        self._last[trajectory_id].update(end)

    def abandon(self, trajectory_id: str) -> None:
        """Expect no more steps of a trajectory; there is nothing to let go of."""


class Together:
    """Starts trajectories that are written together. Get one from `StepRecorder.together`."""

    def __init__(self, begin: Callable[[str, str | None], Trajectory]) -> None:
        self._begin = begin

    def trajectory(self, *, task_id: str, trajectory_id: str | None = None) -> Trajectory:
        """Start a trajectory, as `StepRecorder.trajectory` does.

        What `log` and `end` return from is not safe yet: all of it is when the `with` block of
        `together` has ended.
        """
        return self._begin(task_id, trajectory_id)
