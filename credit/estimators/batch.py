"""The steps of many groups at once, as integer codes: all that an estimator sees."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from graphcredit.credit.graph.distances import StateGraph
from graphcredit.credit.steps.arrays import Bools, Floats, Ints, sum_per_run
from graphcredit.store.errors import InputError


@dataclass(frozen=True, kw_only=True, slots=True)
class StepBatch:
    """Complete trajectories of whole groups, sorted by group, trajectory and step.

    Example: one group, `x: A -a-> B -b-> goal` (success) and `y: A -a-> B` (failure) is

        trajectory_start    [0, 2, 3]        group_of_trajectory [0, 0]
        state_of_step       [0, 1, 0]        target_of_step      [1, 2, 1]
        node_start          [0, 3]           goal_of_group       [2]
    """

    trajectory_start: Ints
    """[num_trajectories + 1] first step of each trajectory."""
    group_of_trajectory: Ints
    """[num_trajectories] its group, ascending."""
    is_success: Bools
    """[num_trajectories] whether the task was accomplished."""
    trajectory_of_step: Ints
    """[num_steps] ascending."""
    group_of_step: Ints
    """[num_steps] ascending."""
    state_of_step: Ints
    """[num_steps] node the step leaves; nodes of a group are consecutive."""
    target_of_step: Ints
    """[num_steps] node the step leads to; the goal for the last step of a success."""
    action_of_step: Ints
    """[num_steps] code of the action text."""
    reward: Floats
    """[num_steps] environment reward, less the penalty for invalid actions."""
    cost: Floats
    """[num_steps] > 0."""
    is_valid: Bools
    """[num_steps] whether the action did something; always true on the last step of a success."""
    node_start: Ints
    """[num_groups + 1] first node of each group."""
    goal_of_group: Ints
    """[num_groups] the goal, always the last node of its group; -1 in a group without success."""
    graph: StateGraph
    """Transitions and distances of all groups."""
    columns: Mapping[str, pa.ChunkedArray] = field(default_factory=dict[str, pa.ChunkedArray])
    """Name to [num_steps] values of each step column that an estimator declares in `reads`."""
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What estimators need besides, by name: rows of `inputs/table.py`."""

    def input(self, name: str) -> Any:
        """Return an input that the estimator's row names.

        Raises:
            InputError: The batch was assembled without it.
        """
        if name not in self.inputs:
            raise InputError(f"an estimator needs the input {name}: assemble the batch with it")
        return self.inputs[name]

    @property
    def num_steps(self) -> int:
        """Steps in the batch."""
        return len(self.state_of_step)

    @property
    def num_groups(self) -> int:
        """Groups in the batch."""
        return len(self.goal_of_group)

    @property
    def num_nodes(self) -> int:
        """Nodes of all groups, goals included."""
        return int(self.node_start[-1])

    @property
    def trajectory_length(self) -> Ints:
        """[num_trajectories] steps of each trajectory."""
        return np.diff(self.trajectory_start)

    @property
    def episode_return(self) -> Floats:
        """[num_trajectories] R, the sum of rewards."""
        return sum_per_run(self.reward, self.trajectory_start)

    @property
    def group_of_node(self) -> Ints:
        """[num_nodes] the group a node belongs to."""
        return np.repeat(np.arange(self.num_groups), np.diff(self.node_start))
