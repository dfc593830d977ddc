"""The trajectory and the step that the Trajectory page shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from graphcredit.viewer.queries.outcomes import well_ended
from graphcredit.viewer.steps import facts


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """A trajectory, one of its steps, and whose credit is shown."""

    run_id: str
    iteration: int
    task: str
    name: str
    """Id of the trajectory."""
    table: pa.Table
    """Its steps with their credit, from `queries.trajectory.steps`."""
    row: int
    """Row of the step."""
    group: pa.Table
    """The credited steps of its group, from `queries.graphs.task_steps`."""
    names: Sequence[str]
    """The estimators with credit in the iteration."""
    estimator: str | None
    """None if it gave the trajectory no credit."""
    ending: str
    """How the trajectory ended."""

    @property
    def where(self) -> dict[str, Any]:
        """The run and the iteration, as arguments of queries."""
        return {"run_id": self.run_id, "iteration": self.iteration}

    @property
    def step(self) -> dict[str, Any]:
        """The values of the step."""
        return self.table.slice(self.row, 1).to_pylist()[0]

    @property
    def index(self) -> int:
        """Index of the step within the trajectory; it is not the row if steps are missing."""
        return self.table["step_index"][self.row].as_py()

    @property
    def extremes(self) -> list[tuple[str, int, float]]:
        """The most credited and the most blamed step, see `facts.extreme_steps`."""
        if self.estimator is None:
            return []
        return facts.extreme_steps(self.table, self.estimator, facts.telling(self.group, self.name))


def opening_row(table: pa.Table, group: pa.Table, estimator: str) -> int:
    """Return the row to open at: of a win the most credited step, else the most blamed one.

    Of scores, a win is a return above the group's mean. Without such a step it is the first one.
    """
    name = table["trajectory_id"][0].as_py()
    extremes = facts.extreme_steps(table, estimator, facts.telling(group, name))
    word = "Most credit" if name in well_ended(group) else "Most blame"
    return next((row for title, row, _ in extremes if title == word), 0)
