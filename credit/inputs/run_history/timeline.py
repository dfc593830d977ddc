"""The iterations of a run in order, so that each trajectory is credited with its past alone.

Whether iterations arrive one by one or a whole run is credited at once, the counts are those of the
iterations before: they come from `history/` where it has exactly these, and are counted again from
the steps where it has not.
"""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.credit.inputs.material import (
    InputProvider,
    IterationSteps,
    Material,
    Opening,
    StoredRun,
)
from graphcredit.credit.inputs.run_history.before import Past, count_trajectories
from graphcredit.credit.inputs.run_history.counts import NAME_SCHEMA, RunHistory, StateScores
from graphcredit.credit.merging.merger import Merged, Merger
from graphcredit.credit.steps.arrays import Ints
from graphcredit.credit.steps.batches import Plan, plan_batches, read_batches
from graphcredit.credit.steps.complete import COLUMNS, Steps, complete_trajectories
from graphcredit.credit.steps.nodes import Nodes
from graphcredit.store.layout import Shard
from graphcredit.store.parquet.numbers import arrow_of, numpy_of
from graphcredit.store.parquet.shards import fingerprint


def open_history(opening: Opening) -> InputProvider:
    """Return the past of a run: of its store, or of the iterations that are in memory."""
    if opening.stored is None:
        return PastInMemory()
    scores = (each for each in opening.options.values() if isinstance(each, StateScores))
    return Timeline(opening.stored, next(scores))


class Timeline(InputProvider):
    """The past of a run, moved on iteration by iteration."""

    def __init__(self, run: StoredRun, scores: StateScores) -> None:
        store = run.sources.store
        self._run, self._scores, self._merge = run, scores, run.merge.as_json()
        self._path = store.history_path(run.run_id)
        self._history: RunHistory | None = None
        self._present = {
            number: fingerprint(shard.path for shard in shards)
            for number, shards in groupby(store.shards(run.run_id), lambda shard: shard.iteration)
        }

    def enter(self, iteration: IterationSteps | None) -> "IterationPast":
        """Return the past of an iteration's trajectories; those between are counted on the way."""
        assert iteration is not None, "a store's iteration has shards"
        history = self._before(iteration.number)
        scan = _scan(iteration.shards, iteration.plan, iteration.merger, history)
        self._entered = (iteration.number, self._present[iteration.number], scan)
        return IterationPast(scan=scan, history=history)

    def leave(self) -> None:
        """Count the iteration that was entered last."""
        iteration, steps, scan = self._entered
        assert self._history is not None
        self._history.add(iteration, steps, scan.counts, scan.num_trajectories)

    def finish(self) -> None:
        """Write the counts after the last iteration of the run to `history/`."""
        if self._history is None or self._history.iterations != self._present:
            on_disk = RunHistory.load(self._path)
            if on_disk.merge == self._merge and on_disk.iterations == self._present:
                self._history = on_disk
        self._before(max(self._present) + 1).save(self._path, self._scores)

    def _before(self, iteration: int) -> RunHistory:
        """Return the counts over all iterations before one."""
        earlier = {number: mark for number, mark in self._present.items() if number < iteration}
        history = self._history or RunHistory.load(self._path)
        if history.merge != self._merge or not history.starts(earlier):
            history = RunHistory(self._merge)
        for number in sorted(earlier.keys() - history.iterations.keys()):
            shards = self._run.sources.store.shards(self._run.run_id, number)
            plan = plan_batches(shards, self._run.batch_rows)
            scan = _scan(shards, plan, self._run.fit(shards, plan), history)
            history.add(number, earlier[number], scan.counts, scan.num_trajectories)
        self._history = history
        return history


@dataclass(frozen=True, kw_only=True, slots=True)
class _Scan:
    """What the trajectories of an iteration add to the past of later ones."""

    num_ended_before: list[Ints]
    """For each batch, [num_trajectories] how many of this iteration ended earlier."""
    counts: pa.Table
    """From `RunHistory.keyed`, of the states in which it acted."""
    num_trajectories: int


@dataclass(frozen=True, kw_only=True, slots=True)
class IterationPast:
    """The past of one iteration."""

    scan: _Scan
    history: RunHistory

    def of_batch(self, material: Material) -> Past:
        """Return the past of a batch's trajectories and nodes."""
        rank = self.scan.num_ended_before[material.number]
        return _past(self.history, _names(material.merged, self.history), rank)


class PastInMemory(InputProvider):
    """The past of a run whose iterations are in memory, each in one batch."""

    def __init__(self) -> None:
        self._history = RunHistory()

    def enter(self, iteration: IterationSteps | None) -> "PastInMemory":
        """Return the past, for the next iteration."""
        del iteration
        return self

    def of_batch(self, material: Material) -> Past:
        """Return the past of the trajectories and nodes of an iteration, and count it."""
        rank = _rank(_ends(material.table, material.steps))
        names = _names(material.merged, self._history)
        past = _past(self._history, names, rank)
        counts = self._history.keyed(_counts(material.steps, material.nodes, names))
        self._history.add(len(self._history.iterations), "", counts, len(rank))
        return past


def _names(merged: Merged, history: RunHistory) -> pa.Table:
    """Return [num_nodes] what each node is known by, `NAME_SCHEMA`; `state` is null at a goal."""
    steps, nodes = merged.steps, merged.nodes
    first_step = np.unique(nodes.group_of_step, return_index=True)[1]
    tasks = steps.task_texts.take(arrow_of(steps.task[first_step][nodes.group_of_node]))
    is_goal = nodes.text_of_node < 0
    states = steps.state_texts.take(arrow_of(nodes.text_of_node, is_null=is_goal))
    columns = {"task_id": tasks, "state": states}
    if merged.names is None:
        nulls = pa.nulls(len(states))
        return pa.table(columns | {"identity": nulls, "signature": nulls}).cast(NAME_SCHEMA)
    names = merged.names()
    table = pa.table(columns | {name: names[name] for name in names.column_names})
    return history.signed(table.cast(NAME_SCHEMA))


def _past(history: RunHistory, names: pa.Table, rank: Ints) -> Past:
    num_total, num_success = history.look_up(names)
    return Past(
        num_ended_before=rank + history.num_trajectories,
        num_total=num_total,
        num_success=num_success,
    )


def _scan(shards: Sequence[Shard], plan: Plan, merger: Merger, history: RunHistory) -> _Scan:
    """Order the complete trajectories of an iteration by their end, and count where they acted."""
    ends: list[pa.Table] = []
    counts: list[pa.Table] = []
    columns = (*COLUMNS, "logged_at", *merger.settings.columns)
    for pieces in read_batches(shards, plan, columns):
        table = pa.concat_tables([piece.steps for piece in pieces])
        steps, _ = complete_trajectories(table)
        ends.append(_ends(table, steps))
        merged = merger.nodes(steps, table)
        names = _names(merged, history)
        counts.append(history.keyed(_counts(merged.steps, merged.nodes, names)))
    rank = _rank(pa.concat_tables(ends))
    return _Scan(
        num_ended_before=np.split(rank, np.cumsum([table.num_rows for table in ends])[:-1]),
        counts=pa.concat_tables(counts),
        num_trajectories=len(rank),
    )


def _rank(ends: pa.Table) -> Ints:
    """Return for each trajectory how many ended before it."""
    keys = [(name, "ascending") for name in ends.column_names]
    rank = np.empty(ends.num_rows, np.int64)
    rank[numpy_of(pc.sort_indices(ends, keys))] = np.arange(ends.num_rows)
    return rank


def _ends(table: pa.Table, steps: Steps) -> pa.Table:
    last = table.take(arrow_of(steps.row[steps.trajectory_start[1:] - 1]))
    text = {name: last[name].cast(pa.string()) for name in ("trajectory_id", "task_id")}
    return pa.table({"logged_at": last["logged_at"], **text})


def _counts(steps: Steps, nodes: Nodes, names: pa.Table) -> pa.Table:
    lengths = np.diff(steps.trajectory_start)
    num_total, num_success = count_trajectories(
        trajectory_of_visit=np.repeat(np.arange(len(lengths)), lengths),
        node_of_visit=nodes.state_of_step,
        is_success=steps.is_success[steps.trajectory_start[1:] - 1],
        num_nodes=names.num_rows,
    )
    counted = names.append_column("num_total", arrow_of(num_total))
    counted = counted.append_column("num_success", arrow_of(num_success))
    return counted.filter(arrow_of(num_total > 0))
