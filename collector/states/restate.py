"""States of a store by a rule: beside its steps, which stay as they are."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice
from typing import Any

import pyarrow as pa

from graphcredit.collector.states.calls import Visit, visits_of
from graphcredit.collector.states.content import clean
from graphcredit.collector.states.effects import Effects, learn_effects
from graphcredit.collector.states.rows import COLUMNS, moves_of_rows
from graphcredit.collector.states.rules import ToolRule
from graphcredit.collector.states.table import learned, must_learn, tool_rule
from graphcredit.store.errors import InputError, system_errors
from graphcredit.store.layout import AnyStore, Shard, open_store, states_name
from graphcredit.store.parquet.numbers import array_of
from graphcredit.store.parquet.shards import conform, open_parquet, step_columns
from graphcredit.store.parquet.states import STATES_SCHEMA, write_states

MOST_LEARNED = 2000
"""Trajectories of a run that a rule learns from: its first ones."""

_ENDS = "[end: "
"""How a state begins that only says how a trajectory ended."""

_Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Restated:
    """What was written for a run."""

    run_id: str
    rule: str
    """The rule, with all that was learned."""
    effects: Effects | None
    """What was learned of the tools; None where nothing had to be."""
    num_steps: int
    num_states: int
    """Different ones, each counted in its group."""
    num_alone: int
    """Steps from a state that no other trajectory of their group was in."""


@system_errors()
def restate(store: AnyStore, rule: str, *, run_id: str | None = None) -> list[Restated]:
    """Write the states of a store's steps by a rule; credit reads them with `state`.

    A rule that learns does so from each run for itself.

    Args:
        store: The store.
        rule: Rules of `TOOL_RULES`, with `+` between several.
        run_id: Only this run.

    Raises:
        OptionError: There is no such rule.
        InputError: There are no step shards.
    """
    opened = open_store(store)
    tool_rule(rule)
    name = states_name(rule)
    shards = [shard.with_state(name) for shard in opened.shards(run_id)]
    if not shards:
        raise InputError(f"{opened.root} must have step shards of run {run_id or 'any'}: has none")
    by_run = groupby(shards, lambda shard: shard.run_id)
    return [_restate_run(run, list(of_run), rule) for run, of_run in by_run]


def _restate_run(run_id: str, shards: Sequence[Shard], rule: str) -> Restated:
    effects = None
    if must_learn(rule):
        effects = _learn(_iterations(shards))
        rule = learned(rule, effects.tools)
    visitors: defaultdict[tuple[int, str, str], list[str]] = defaultdict(list)
    for number, of_iteration in groupby(shards, lambda shard: shard.iteration):
        for shard, rows in _with_states(list(of_iteration), rule):
            write_states(shard, pa.Table.from_pylist(rows, STATES_SCHEMA), rule)
            for row in rows:
                visitors[number, row["task_id"], row["state"]].append(row["trajectory_id"])
    return Restated(
        run_id=run_id,
        rule=rule,
        effects=effects,
        num_steps=sum(map(len, visitors.values())),
        num_states=len(visitors),
        num_alone=sum(len(ids) for ids in visitors.values() if len(set(ids)) == 1),
    )


def _learn(iterations: Iterable[Iterable[_Row]]) -> Effects:
    groups: defaultdict[tuple[int, str], list[Sequence[Visit]]] = defaultdict(list)
    trajectories = (
        (number, rows) for number, steps in enumerate(iterations) for rows in _by_trajectory(steps)
    )
    for number, rows in islice(trajectories, MOST_LEARNED):
        groups[number, rows[0]["task_id"]].append(visits_of(moves_of_rows(rows)))
    return learn_effects(groups.values())


def _iterations(shards: Sequence[Shard]) -> Iterator[Iterator[_Row]]:
    for _, of_iteration in groupby(shards, lambda shard: (shard.run_id, shard.iteration)):
        yield chain.from_iterable(map(_rows, of_iteration))


def _with_states(shards: Sequence[Shard], rule: str) -> Iterator[tuple[Shard, list[_Row]]]:
    """Yield the rows of each shard of an iteration, with their states by the rule."""
    of_shard = [(shard, _rows(shard)) for shard in shards]
    _set_states((row for _, its_rows in of_shard for row in its_rows), rule)
    yield from of_shard


@dataclass(frozen=True, kw_only=True, slots=True)
class VisitedRows:
    """A trajectory of a table: where its steps stand, and what it visited."""

    rows: list[int]
    """Rows of its steps, in its order."""
    visits: list[Visit]
    """[len(rows)]"""
    end: str
    """The last `next_state`."""


def visited_rows(steps: pa.Table) -> list[VisitedRows]:
    """Return the trajectories of steps with `trajectory_id`, `step_index` and `COLUMNS`."""
    rows = steps.select(["trajectory_id", "step_index", *COLUMNS]).to_pylist()
    return [
        VisitedRows(
            rows=[row["row"] for row in of_one],
            visits=visits_of(moves_of_rows(of_one)),
            end=of_one[-1]["next_state"] or "",
        )
        for of_one in _by_trajectory({**row, "row": n} for n, row in enumerate(rows))
    ]


def restated(steps: pa.Table, rule: str, *, read: Sequence[VisitedRows] | None = None) -> pa.Table:
    """Return steps of whole trajectories with their states by a rule, and nothing written.

    Args:
        steps: Trajectory, step index and `COLUMNS` among its columns; one iteration.
        rule: A rule, with all that is to be learned.
        read: Their trajectories, if these are known.
    """
    state_of = tool_rule(rule)
    texts = {name: [""] * steps.num_rows for name in ("state", "next_state")}
    for one in visited_rows(steps) if read is None else read:
        of_one = _texts(state_of, one.visits, one.end)
        for row, state, next_state in zip(one.rows, of_one, of_one[1:], strict=False):
            texts["state"][row], texts["next_state"][row] = state, next_state
    for name, of_steps in texts.items():
        place = steps.schema.get_field_index(name)
        steps = steps.set_column(place, name, array_of(of_steps, pa.string()))
    return steps


def effects_in(store: AnyStore, *, run_id: str | None = None) -> Effects:
    """Return which tools change something, by all steps of a store or of one run together."""
    return _learn(_iterations(open_store(store).shards(run_id)))


def effects_of(iterations: Iterable[pa.Table]) -> Effects:
    """Return which tools change something, by the steps of some iterations."""
    columns = ["task_id", "trajectory_id", "step_index", *COLUMNS]
    return _learn(table.select(columns).to_pylist() for table in iterations)


def _set_states(rows: Iterator[_Row], rule: str) -> None:
    """Replace the states of rows, which are whole trajectories."""
    state_of = tool_rule(rule)
    for of_one in _by_trajectory(rows):
        end = of_one[-1]["next_state"] or ""
        texts = _texts(state_of, visits_of(moves_of_rows(of_one)), end)
        for row, state, next_state in zip(of_one, texts, texts[1:], strict=False):
            row["state"], row["next_state"] = state, next_state


def _texts(state_of: ToolRule, visits: Sequence[Visit], end: str) -> list[str]:
    """Return the state before each step of a trajectory, and that at its end."""
    texts = [*map(clean, state_of([*visits, Visit(seen=end, calls=())]))]
    if end.startswith(_ENDS):
        texts[-1] = end
    return texts


def _by_trajectory(rows: Iterable[_Row]) -> Iterator[list[_Row]]:
    trajectories: defaultdict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        trajectories[row["trajectory_id"]].append(row)
    for members in trajectories.values():
        yield sorted(members, key=lambda row: row["step_index"])


def _rows(shard: Shard) -> list[_Row]:
    columns = step_columns(("task_id", "trajectory_id", "step_index", *COLUMNS))
    with open_parquet(shard.path) as file:
        present = [column.name for column in columns if column.name in file.schema_arrow.names]
        table = conform(file.read(columns=present), columns, where=str(shard.path))
    return table.to_pylist()
