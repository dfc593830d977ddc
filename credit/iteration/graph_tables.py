"""The state graphs of a batch as tables: a row per node, a row per edge."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphcredit.credit.inputs.run_history.before import count_trajectories
from graphcredit.credit.iteration.assemble import Assembly
from graphcredit.credit.steps.arrays import Floats, Ints, factorise_pairs, shares
from graphcredit.store.parquet.numbers import arrow_of
from graphcredit.store.schema import (
    EDGE_COLUMNS,
    EDGE_PARTS,
    NODE_COLUMNS,
    arrow_schema,
    split_estimator_column,
)

NODE_SCHEMA = arrow_schema(NODE_COLUMNS)


def node_table(assembly: Assembly, values: Mapping[str, Floats]) -> pa.Table:
    """Return the nodes of all groups, those of a group adjacent and in order of their ids.

    Args:
        assembly: The batch.
        values: `{column: [num_nodes] values}` of estimators; null where one is not computed.
    """
    batch, steps = assembly.batch, assembly.steps
    last = batch.trajectory_start[1:] - 1
    node_of_visit = np.concatenate([batch.state_of_step, batch.target_of_step[last]])
    (num_trajectories, num_successes), (_, num_judged) = (
        count_trajectories(
            trajectory_of_visit=np.append(batch.trajectory_of_step, np.arange(len(last))),
            node_of_visit=node_of_visit,
            is_success=those,
            num_nodes=batch.num_nodes,
        )
        for those in (batch.is_success, steps.is_judged[last])
    )
    group = batch.group_of_node
    is_goal = np.zeros(batch.num_nodes, bool)
    is_goal[batch.goal_of_group[batch.goal_of_group >= 0]] = True
    distance = np.where(np.isinf(batch.graph.goal_distance), np.nan, batch.graph.goal_distance)
    text, num_merged = _node_texts(assembly)
    task = steps.task[batch.trajectory_start[:-1]][_first_trajectory(batch.group_of_trajectory)]
    columns: dict[str, pa.Array] = {
        "task_id": _texts(steps.task_texts, task[group]),
        "state_id": arrow_of(np.arange(batch.num_nodes) - batch.node_start[:-1][group]),
        "state": _texts(steps.state_texts, text),
        "is_goal": arrow_of(is_goal),
        "visits": arrow_of(np.bincount(node_of_visit, minlength=batch.num_nodes)),
        "num_trajectories": arrow_of(num_trajectories),
        "success_rate": arrow_of(shares(num_successes, num_judged)),
        "goal_distance": arrow_of(distance),
        "num_merged": arrow_of(num_merged),
    }
    columns |= {name: arrow_of(of_nodes) for name, of_nodes in values.items()}
    nulls = pa.nulls(batch.num_nodes)
    return _table({name: columns.get(name, nulls) for name in NODE_SCHEMA.names}, NODE_SCHEMA)


def edge_table(assembly: Assembly, credit: Mapping[str, NDArray[np.generic]]) -> pa.Table:
    """Return the edges of all groups, with the means of some credit columns.

    Args:
        assembly: The batch.
        credit: `{column: [num_steps] values}`; NaN where an earlier run left no credit.
    """
    batch, steps = assembly.batch, assembly.steps
    edge, transition, action = factorise_pairs(batch.graph.transition_of_step, batch.action_of_step)
    source, target = batch.graph.source[transition], batch.graph.target[transition]
    group = batch.group_of_node[source]
    first_node = batch.node_start[:-1][group]
    visits = np.bincount(edge)
    cost = np.full(len(action), np.inf)
    np.minimum.at(cost, edge, batch.cost)
    is_acted = np.zeros(len(action), bool)
    is_acted[edge[batch.is_valid]] = True
    task = steps.task[batch.trajectory_start[:-1]][_first_trajectory(batch.group_of_trajectory)]
    columns: dict[str, pa.Array] = {
        "task_id": _texts(steps.task_texts, task[group]),
        "state_id": arrow_of(source - first_node),
        "next_state_id": arrow_of(target - first_node),
        "action": _texts(steps.action_texts, action),
        "visits": arrow_of(visits),
        "cost": arrow_of(cost),
        "is_pruned": arrow_of(~is_acted | (source == target)),
    }
    schema = arrow_schema(EDGE_COLUMNS)
    for name, values in credit.items():
        if (split := split_estimator_column(name)) and split[1] in EDGE_PARTS:
            mean = np.bincount(edge, values) / visits
            columns[name] = arrow_of(mean.astype(np.float32))
            schema = schema.append(pa.field(name, pa.float32()))
    return _table(columns, schema)


def _node_texts(assembly: Assembly) -> tuple[Ints, Ints]:
    """Return [num_nodes] a representative text code, and how many distinct texts a node has."""
    batch, steps = assembly.batch, assembly.steps
    text = assembly.nodes.text_of_node.copy()
    num_texts = assembly.nodes.num_texts.copy()
    won = (batch.trajectory_start[1:] - 1)[batch.is_success]
    _, goal, goal_text = factorise_pairs(batch.target_of_step[won], steps.next_state[won])
    text[goal[::-1]] = goal_text[::-1]
    num_texts[goal] = np.bincount(goal, minlength=batch.num_nodes)[goal]
    return text, num_texts


def _first_trajectory(group_of_trajectory: Ints) -> Ints:
    return np.unique(group_of_trajectory, return_index=True)[1]


def _texts(texts: pa.Array, code: Ints) -> pa.Array:
    return pa.DictionaryArray.from_arrays(arrow_of(code, pa.int32(), is_null=code < 0), texts)


def _table(columns: Mapping[str, pa.Array], schema: pa.Schema) -> pa.Table:
    """Return the columns with the schema's types; dictionaries stay dictionaries for the writer."""
    fields: list[pa.Field] = []
    arrays: list[pa.Array] = []
    for field, array in zip(schema, columns.values(), strict=True):
        cast = array if pa.types.is_dictionary(array.type) else array.cast(field.type)
        arrays.append(cast)
        fields.append(field.with_type(cast.type))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata=schema.metadata))
