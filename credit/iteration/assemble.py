"""From a table of steps to a batch, and what is needed to name its nodes again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.graph.distances import StateGraph, build_graph
from graphcredit.credit.inputs.material import Material
from graphcredit.credit.inputs.table import Input
from graphcredit.credit.merging.merger import EXACT, Merger, MergeReport
from graphcredit.credit.steps.arrays import Floats
from graphcredit.credit.steps.complete import LeftOut, Steps, complete_trajectories
from graphcredit.credit.steps.nodes import Nodes
from graphcredit.store.parquet.numbers import arrow_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Assembly:
    """A batch, the table rows it came from, and the texts behind its codes."""

    batch: StepBatch
    steps: Steps
    nodes: Nodes
    merged: MergeReport
    left_out: LeftOut
    num_rows: int
    """Rows of the table; those of incomplete trajectories are in no batch."""


def assemble(
    table: pa.Table,
    *,
    merger: Merger = EXACT,
    invalid_action_penalty: float = 0.0,
    inputs: Sequence[Input] = (),
    provided: Mapping[str, Any] = MappingProxyType({}),
    number: int = 0,
    columns: Sequence[str] = (),
) -> Assembly:
    """Build the batch of all complete trajectories in a table.

    Args:
        table: Whole groups of one run and iteration, `complete.COLUMNS`, in any row order, and
            what the merger needs besides.
        merger: Makes nodes of the states; by default one of each distinct text.
        invalid_action_penalty: Taken off the reward of every invalid step before anything else.
        inputs: What estimators need besides; the tables must have the columns that these read.
        provided: Input to what its provider gives for the iteration.
        number: Of the batch in its iteration.
        columns: Step columns that estimators read themselves.

    Raises:
        SchemaError: A key column holds a null.
    """
    steps, left_out = complete_trajectories(table)
    merged = merger.nodes(steps, table)
    material = Material(
        table=table,
        steps=merged.steps,
        nodes=merged.nodes,
        merged=merged,
        number=number,
        provided=provided,
    )
    built = {row.name: row.build(material) for row in inputs}
    taken = {name: table[name].take(arrow_of(merged.steps.row)) for name in columns}
    return Assembly(
        batch=_batch(material, invalid_action_penalty, taken, built),
        steps=merged.steps,
        nodes=merged.nodes,
        merged=merged.report(),
        left_out=left_out,
        num_rows=table.num_rows,
    )


def _graph(material: Material, invalid_action_penalty: float) -> StateGraph:
    steps, nodes = material.steps, material.nodes
    is_last = np.zeros(len(steps.cost), bool)
    is_last[steps.trajectory_start[1:] - 1] = True
    return build_graph(
        state_of_step=nodes.state_of_step,
        target_of_step=nodes.target_of_step,
        cost=steps.cost,
        reward=_rewards(steps, invalid_action_penalty),
        is_last=is_last,
        is_valid=steps.is_valid,
        num_nodes=int(nodes.node_start[-1]),
        goals=nodes.goal_of_group[nodes.goal_of_group >= 0],
    )


def _rewards(steps: Steps, invalid_action_penalty: float) -> Floats:
    """Return [num_steps] rewards, less the penalty for invalid actions."""
    return np.where(steps.is_valid, steps.reward, steps.reward - invalid_action_penalty)


def _batch(
    material: Material,
    invalid_action_penalty: float,
    columns: Mapping[str, pa.ChunkedArray],
    inputs: Mapping[str, Any],
) -> StepBatch:
    steps, nodes = material.steps, material.nodes
    lengths = np.diff(steps.trajectory_start)
    return StepBatch(
        trajectory_start=steps.trajectory_start,
        group_of_trajectory=nodes.group_of_step[steps.trajectory_start[:-1]],
        is_success=steps.is_success[steps.trajectory_start[1:] - 1],
        trajectory_of_step=np.repeat(np.arange(len(lengths)), lengths),
        group_of_step=nodes.group_of_step,
        state_of_step=nodes.state_of_step,
        target_of_step=nodes.target_of_step,
        action_of_step=steps.action,
        reward=_rewards(steps, invalid_action_penalty),
        cost=steps.cost,
        is_valid=steps.is_valid,
        node_start=nodes.node_start,
        goal_of_group=nodes.goal_of_group,
        graph=_graph(material, invalid_action_penalty),
        columns=columns,
        inputs=inputs,
    )
