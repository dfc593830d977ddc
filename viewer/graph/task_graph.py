"""One task's state graph, read from the store's graph tables, and keys of its parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

from graphcredit.store.errors import InputError
from graphcredit.store.layout import Store
from graphcredit.store.sql.views import identifier
from graphcredit.viewer.queries.views import answer, columns

Ends: TypeAlias = tuple[int, int]
"""Source and target of a transition, which identify it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A state."""

    state_id: int
    state: str
    is_goal: bool
    visits: int
    num_trajectories: int
    """Number of trajectories that were here."""
    success_rate: float | None
    """Share of those that succeeded; None where nothing says who did."""
    goal_distance: float | None
    """Cost of the cheapest observed path to the goal; None if there is none."""
    rewardflow_value: float | None
    """RewardFlow's potential; None if it was not computed."""
    reach_expected: float | None
    """What is still earned from here, by the group's own steps; None if `reach` has no credit."""
    num_merged: int
    """Number of distinct texts that were merged into this state."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Edge:
    """All steps from one state to another."""

    source: int
    target: int
    actions: tuple[str, ...]
    """The actions of these steps, the most frequent first."""
    visits: int
    cost: float
    """The least cost of a step."""
    advantage: float | None
    """Mean over the steps; None if none has credit."""
    is_pruned: bool
    """Whether no step had an effect."""
    between: tuple[int, ...] = ()
    """The states on a way that is drawn as one line; empty for a transition."""

    @property
    def ends(self) -> Ends:
        """Source and target, which identify the edge."""
        return self.source, self.target


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskGraph:
    """The states of one task and the transitions between them."""

    nodes: tuple[Node, ...]
    """Sorted by id; the first one is the start of the task."""
    edges: tuple[Edge, ...]
    """Sorted by source and target."""

    @property
    def goal(self) -> int | None:
        """The id of the goal; None if no trajectory succeeded."""
        return next((node.state_id for node in self.nodes if node.is_goal), None)

    def part(self, states: frozenset[int]) -> "TaskGraph":
        """Return some states and the transitions between them."""
        return TaskGraph(
            nodes=tuple(node for node in self.nodes if node.state_id in states),
            edges=tuple(edge for edge in self.edges if {*edge.ends} <= states),
        )


def node_key(state_id: int) -> str:
    """Return the key of a state in the drawing."""
    return f"n{state_id}"


def edge_key(ends: Ends) -> str:
    """Return the key of a transition in the drawing."""
    return f"e{ends[0]}-{ends[1]}"


def parse_key(key: str) -> int | Ends | None:
    """Return the state, or the ends of the transition, of a key; None if the key is invalid."""
    numbers = key[1:].split("-")
    if not all(number.isascii() and number.isdigit() for number in numbers):
        return None
    match key[:1], [int(number) for number in numbers]:
        case "n", [state_id]:
            return state_id
        case "e", [source, target]:
            return source, target
        case _:
            return None


def read_task_graph(
    store: Store, *, run_id: str, iteration: int, task_id: str, column: str
) -> TaskGraph:
    """Read one task's graph, with the mean of one credit column on its edges.

    Raises:
        InputError: There are no graph tables, no such task, or no credit of that estimator.
    """
    place: Any = {"run_id": run_id, "iteration": iteration}
    where = f"the graph of run {run_id}, iteration {iteration}"
    if column not in columns(store, "edges", **place):
        raise InputError(
            f"{where} has no {column}: run `graphcredit credit STORE "
            f"--estimator {column.partition('_')[0]}` first"
        )
    nodes = answer(store, _NODES, [task_id], **place).to_pylist()
    edges = answer(store, _edges_sql(column), [task_id], **place).to_pylist()
    if not nodes:
        raise InputError(f"{where} has no task {task_id!r}")
    return TaskGraph(
        nodes=tuple(Node(**row) for row in nodes),
        edges=tuple(_edge(list(same)) for _, same in groupby(edges, key=_ends)),
    )


_NODES = f"""
    SELECT {", ".join(name for name in Node.__slots__ if name != "state")},
        coalesce(state, '') AS state
    FROM nodes WHERE task_id = ? ORDER BY state_id
"""


def _edges_sql(column: str) -> str:
    return f"""
        SELECT
            state_id, next_state_id, action, visits, cost, is_pruned,
            {identifier(column)} AS advantage
        FROM edges WHERE task_id = ? ORDER BY state_id, next_state_id, visits DESC, action
    """


def _ends(row: dict[str, Any]) -> Ends:
    return row["state_id"], row["next_state_id"]


def _edge(rows: Sequence[dict[str, Any]]) -> Edge:
    credited = [row for row in rows if row["advantage"] is not None]
    visits = sum(row["visits"] for row in credited)
    total = sum(row["advantage"] * row["visits"] for row in credited)
    return Edge(
        source=rows[0]["state_id"],
        target=rows[0]["next_state_id"],
        actions=tuple(row["action"] for row in rows),
        visits=sum(row["visits"] for row in rows),
        cost=min(row["cost"] for row in rows),
        advantage=total / visits if visits else None,
        is_pruned=all(row["is_pruned"] for row in rows),
    )
