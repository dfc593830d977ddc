"""Explain a step's advantage, in the words that its credit has of what was compared with what."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from graphcredit.store.provenance.explained import Compared, Explanation
from graphcredit.viewer.steps.facts import value_of

_Floats = NDArray[np.float64]

_PARTS: Mapping[str, str] = {
    "episode_advantage": "episode part",
    "step_advantage": "step part",
    "q": "q",
    "value": "value",
    "outcome": "outcome",
    "baseline": "baseline",
    "progress": "progress",
}
_BESIDE: Mapping[str, tuple[str, str]] = {
    "trajectories": (
        "the {} rollouts of its group",
        "its group has no other rollout to compare with",
    ),
    "others": (
        "the {} other rollouts of its group",
        "its group has no other rollout to compare with",
    ),
    "states": (
        "the {} steps of its group from this state",
        "no other step of its group starts from this state, so it is compared with none",
    ),
    "edges": (
        "the {} transitions from this state, each counted once",
        "the group took no other transition from this state",
    ),
    "trajectory": ("the {} steps of its rollout", "its rollout has no other step to compare with"),
    "group": ("all {} steps of its group", "its group has no other step to compare with"),
}
"""Whom a number is compared with, in words: several, and nobody else."""


def reasons(
    table: pa.Table,
    step: int,
    estimator: str,
    *,
    explanation: Explanation | None,
    group: "GroupSteps",
) -> list[str]:
    """Return lines that explain an estimator's advantage of a step."""
    total = value_of(table, f"{estimator}_advantage", step)
    if total is None:
        return [f"{estimator} gives this step no credit."]
    parts = {
        part: f"{name} {value:+.2f}"
        for part, name in _PARTS.items()
        if (value := value_of(table, f"{estimator}_{part}", step)) is not None
    }
    said = f"{estimator} gives {total:+.2f}"
    if explanation is None:
        return [
            f"{said}.",
            *([f"Its parts: {', '.join(parts.values())}."] if parts else []),
            "This credit does not say what it compared; credit that is assigned by this version "
            "does.",
        ]
    row = group.row_of(table["trajectory_id"][step].as_py(), table["step_index"][step].as_py())

    def why(part: str) -> str:
        compared = explanation.parts.get(part, ())
        clauses = "; and ".join(_clause(one, group, row, estimator) for one in compared)
        return f": {clauses}." if clauses else "."

    if not explanation.total:
        return [said + why("advantage")]
    return [
        f"{said}: {explanation.total}.",
        *(words[0].upper() + words[1:] + why(part) for part, words in parts.items()),
    ]


def _clause(compared: Compared, group: "GroupSteps", row: int | None, estimator: str) -> str:
    """Return what was compared with whom, and by how much where the numbers are known."""
    unit = f", in {compared.unit}" if compared.unit else ""
    if compared.among == "nobody":
        return f"{compared.what}{f' (a {compared.unit})' if compared.unit else ''}"
    if compared.among == "past":
        return f"{compared.what}, against the steps of its group with the same last states{unit}"
    if row is None:
        return compared.what
    values, own, members = group.compared(row, compared, estimator=estimator)
    several, alone = _BESIDE[compared.among]
    count = int(members.sum())
    if count <= (0 if compared.among == "others" else 1):
        return f"{compared.what}; {alone}"
    beside = several.format(count)
    if values is None or not np.isfinite(values[own]):
        return f"{compared.what}, against {beside}{unit}"
    mean = values[members].mean()
    return f"{compared.what} is {values[own]:.3g}, against a mean of {mean:.3g} over {beside}{unit}"


class GroupSteps:
    """The credited steps of a group, to look up what one of them was compared with."""

    def __init__(self, steps: pa.Table, *, penalty: float) -> None:
        """Take the steps.

        Args:
            steps: From `queries.graphs.task_steps`: sorted by trajectory and step.
            penalty: What an invalid action takes off its reward.
        """
        self._steps = steps
        ids = steps["trajectory_id"].to_pylist()
        self._names, self._code = np.unique(np.array(ids, dtype=object), return_inverse=True)
        starts = np.searchsorted(self._code, np.arange(len(self._names)))
        self._succeeded = _floats(steps["succeeded"])[starts] > 0
        valid = _floats(steps["is_action_valid"]) > 0
        ends = np.append(starts[1:], len(ids)) - 1
        valid[ends[self._succeeded]] = True
        self._reward = _floats(steps["reward"]) - penalty * ~valid

    def row_of(self, trajectory_id: str, step_index: int) -> int | None:
        """Return the row of a step; None if it has no credit."""
        rows = pc.and_(
            pc.equal(self._steps["trajectory_id"], trajectory_id),
            pc.equal(self._steps["step_index"], step_index),
        )
        places = np.flatnonzero(_floats(rows))
        return int(places[0]) if len(places) else None

    def compared(
        self, row: int, compared: Compared, *, estimator: str
    ) -> tuple[_Floats | None, int, NDArray[np.bool_]]:
        """Return the numbers that were compared.

        Args:
            row: Of the step, from `row_of`.
            compared: The comparison.
            estimator: Whose step rewards to look up.

        Returns:
            [num_steps] or [num_trajectories] numbers, None if only the estimator knows them; the
            place of the step's own; which of them it is compared with.
        """
        if compared.among in ("trajectories", "others"):
            code = int(self._code[row])
            members = np.ones(len(self._names), bool)
            members[code] = compared.among == "trajectories"
            values = {
                "success": self._succeeded.astype(float),
                "return": np.bincount(self._code, self._reward, len(self._names)).astype(float),
            }
            return values.get(compared.number), code, members
        return self._of_steps(compared, estimator), row, self._beside(row, compared.among)

    def _of_steps(self, compared: Compared, estimator: str) -> _Floats | None:
        column = f"{estimator}_step_reward"
        if compared.number == "step_reward" and column in self._steps.column_names:
            return _floats(self._steps[column])
        if compared.number != "return_to_go":
            return None
        following = self._reward.copy()
        for row in range(len(following) - 2, -1, -1):
            if self._code[row] == self._code[row + 1]:
                following[row] += compared.discount * following[row + 1]
        return following

    def _beside(self, row: int, among: str) -> NDArray[np.bool_]:
        state = _floats(self._steps["state_id"])
        here = state == state[row]
        if among == "states":
            return here
        if among == "edges":
            _, first = np.unique(_floats(self._steps["next_state_id"])[here], return_index=True)
            one_each = np.zeros(len(here), bool)
            one_each[np.flatnonzero(here)[first]] = True
            return one_each
        if among == "trajectory":
            return self._code == self._code[row]
        return np.full(len(here), among == "group")


def _floats(column: pa.ChunkedArray) -> _Floats:
    return pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False)
