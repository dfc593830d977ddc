"""Look up what an estimator compared: the number of a step, and the mean of those beside it."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from graphcredit.store.provenance.explained import Compared

_Floats = NDArray[np.float64]
_Bools = NDArray[np.bool_]

OF_TRAJECTORIES = ("trajectories", "others")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reference:
    """A number, and those it is compared with."""

    count: int
    """How many are compared; its own is among them, except among `others`."""
    own: float | None = None
    """None if only the estimator knows the numbers."""
    mean: float | None = None


class GroupSteps:
    """The credited steps of a group, to look up comparisons of one of them."""

    def __init__(self, steps: pa.Table, *, penalty: float) -> None:
        """Take the steps.

        Args:
            steps: From `queries.graphs.task_steps`: sorted by trajectory and step.
            penalty: What an invalid action takes off its reward.
        """
        self._steps = steps
        ids = steps["trajectory_id"].to_pylist()
        self._names, self._code = np.unique(np.array(ids, dtype=object), return_inverse=True)
        self._starts = np.searchsorted(self._code, np.arange(len(self._names)))
        self._succeeded = _floats(steps["succeeded"])[self._starts] > 0
        valid = _floats(steps["is_action_valid"]) > 0
        ends = np.append(self._starts[1:], len(ids)) - 1
        valid[ends[self._succeeded]] = True
        self._reward = _floats(steps["reward"]) - penalty * ~valid

    def row_of(self, trajectory_id: str, step_index: int) -> int | None:
        """Return the row of a step; None if it has no credit."""
        rows = pc.and_(
            pc.equal(self._steps["trajectory_id"], trajectory_id),
            pc.equal(self._steps["step_index"], step_index),
        )
        found = np.flatnonzero(_floats(rows))
        return int(found[0]) if len(found) else None

    def reference(self, row: int, compared: Compared, *, estimator: str) -> Reference:
        """Return what the number of a step is compared with.

        Args:
            row: From `row_of`.
            compared: The comparison.
            estimator: Whose step rewards to look up.
        """
        if compared.among in OF_TRAJECTORIES:
            values, own = self._of_trajectories(compared.number), int(self._code[row])
            members = np.ones(len(self._names), bool)
            members[own] = compared.among == "trajectories"
        else:
            values, own = self._of_steps(compared, estimator), row
            members = self._beside(row, compared.among)
        count = int(members.sum())
        if values is None or not count or not np.isfinite(values[own]):
            return Reference(count=count)
        return Reference(count=count, own=float(values[own]), mean=float(values[members].mean()))

    def _of_trajectories(self, number: str) -> _Floats | None:
        if number == "success":
            return self._succeeded.astype(float)
        if number == "return":
            return np.bincount(self._code, self._reward, len(self._names)).astype(float)
        return None

    def _of_steps(self, compared: Compared, estimator: str) -> _Floats | None:
        column = f"{estimator}_step_reward"
        if compared.number == "step_reward" and column in self._steps.column_names:
            return _floats(self._steps[column])
        if compared.number != "return_to_go":
            return None
        found = self._reward.copy()
        for row in range(len(found) - 2, -1, -1):
            if self._code[row] == self._code[row + 1]:
                found[row] += compared.discount * found[row + 1]
        return found

    def _beside(self, row: int, among: str) -> _Bools:
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
