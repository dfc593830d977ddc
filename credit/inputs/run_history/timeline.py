"""The iterations of a run in order, so that each trajectory is credited with its past alone.

Whether iterations arrive one by one or a whole run is credited at once, the counts are those of the
iterations before: they come from `history/` where it has exactly these, and are counted again from
the steps where it has not.
"""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.credit.inputs.run_history.before import Past, count_trajectories
from graphcredit.credit.inputs.run_history.counts import RunHistory, StateScores
from graphcredit.credit.inputs.run_history.state_names import Names
from graphcredit.credit.merging.merger import Merger
from graphcredit.credit.merging.recognise import Identify
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.steps.arrays import Ints
from graphcredit.credit.steps.batches import Plan, plan_batches, read_batches
from graphcredit.credit.steps.complete import COLUMNS, Steps, complete_trajectories
from graphcredit.credit.steps.nodes import Nodes
from graphcredit.store.layout import Shard, Store
from graphcredit.store.parquet.shards import fingerprint

Teach: TypeAlias = Callable[[Sequence[Shard], Plan], Merger]
"""Returns the merger that has learned from an iteration: of its step shards and batches."""


class Timeline:
    """The past of a run, moved on iteration by iteration."""

    def __init__(
        self,
        store: Store,
        run_id: str,
        scores: StateScores,
        *,
        merge: MergeSettings,
        teach: Teach,
        batch_rows: int,
    ) -> None:
        """Look at which iterations there are.

        Args:
            store: The store.
            run_id: The run.
            scores: What a state is worth by its counts.
            merge: Which texts are one state.
            teach: Makes the mergers of iterations that are counted on the way.
            batch_rows: Rows that are processed together.
        """
        self._store, self._run_id, self._scores = store, run_id, scores
        self._merge, self._teach, self._batch_rows = merge.as_json(), teach, batch_rows
        self._path = store.history_path(run_id)
        self._history: RunHistory | None = None
        self._present = {
            number: fingerprint(shard.path for shard in shards)
            for number, shards in groupby(store.shards(run_id), lambda shard: shard.iteration)
        }

    def enter(
        self, iteration: int, shards: Sequence[Shard], plan: Plan, merger: Merger
    ) -> "IterationPast":
        """Return the past of an iteration's trajectories.

        Iterations are entered in ascending order; those between are counted on the way.

        Args:
            iteration: Its number.
            shards: Its step shards.
            plan: Its batches.
            merger: Has learned from it.
        """
        history = self._before(iteration)
        scan = _scan(shards, plan, merger, history)
        past = IterationPast(scan=scan, history=history)
        self._entered = (iteration, self._present[iteration], scan)
        return past

    def leave(self) -> None:
        """Count the iteration that was entered last."""
        iteration, steps, scan = self._entered
        assert self._history is not None
        self._history.add(iteration, steps, scan.counts, scan.num_trajectories)

    def finish(self) -> None:
        """Write the counts after the last iteration of the run to `history/`."""
        on_disk = RunHistory.load(self._path)
        if on_disk.merge == self._merge and on_disk.iterations == self._present:
            on_disk.save(self._path, self._scores)
            return
        self._before(max(self._present) + 1).save(self._path, self._scores)

    def _before(self, iteration: int) -> RunHistory:
        """Return the counts over all iterations before one."""
        earlier = {number: mark for number, mark in self._present.items() if number < iteration}
        history = self._history or RunHistory.load(self._path)
        if history.merge != self._merge or not history.starts(earlier):
            history = RunHistory(self._merge)
        for number in sorted(earlier.keys() - history.iterations.keys()):
            shards = self._store.shards(self._run_id, number)
            plan = plan_batches(shards, self._batch_rows)
            scan = _scan(shards, plan, self._teach(shards, plan), history)
            history.add(number, earlier[number], scan.counts, scan.num_trajectories)
        self._history = history
        return history


@dataclass(frozen=True, kw_only=True, slots=True)
class _Scan:
    """What the trajectories of an iteration add to the past of later ones."""

    num_ended_before: list[Ints]
    """For each batch, [num_trajectories] how many of this iteration ended earlier."""
    counts: pa.Table
    """`recognise.NAME_SCHEMA` and `num_total, num_success`, of the states in which it acted."""
    num_trajectories: int


@dataclass(frozen=True, kw_only=True, slots=True)
class IterationPast:
    """The past of one iteration."""

    scan: _Scan
    history: RunHistory

    def of_batch(
        self, number: int, table: pa.Table, steps: Steps, nodes: Nodes, identify: Identify | None
    ) -> Past:
        """Return the past of a batch's trajectories and nodes; its table is not needed."""
        del table
        names = Names.after(self.history, steps, nodes, identify)
        return _past(self.history, names, self.scan.num_ended_before[number])


def past_of_table(
    table: pa.Table, steps: Steps, nodes: Nodes, identify: Identify | None, history: RunHistory
) -> Past:
    """Return the past of a whole iteration in memory, and count the iteration.

    Args:
        table: The rows that the steps were made of, with `logged_at`.
        steps: All steps of the iteration.
        nodes: Their nodes.
        identify: Returns what nodes are recognised by; None where that is the text.
        history: The iterations before; this one is added to it.
    """
    rank = _rank(_ends(table, steps))
    names = Names.after(history, steps, nodes, identify)
    past = _past(history, names, rank)
    counts = _counts(steps, nodes, names)
    history.add(len(history.iterations), "", counts, len(rank))
    return past


def _past(history: RunHistory, names: Names, rank: Ints) -> Past:
    num_total, num_success = history.look_up(names.table)
    return Past(
        num_ended_before=rank + history.num_trajectories,
        num_total=num_total[names.of_node],
        num_success=num_success[names.of_node],
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
        names = Names.after(history, merged.steps, merged.nodes, merged.identify)
        counts.append(_counts(merged.steps, merged.nodes, names))
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
    rank[pc.sort_indices(ends, keys).to_numpy()] = np.arange(ends.num_rows)
    return rank


def _ends(table: pa.Table, steps: Steps) -> pa.Table:
    last = table.take(steps.row[steps.trajectory_start[1:] - 1])
    text = {name: last[name].cast(pa.string()) for name in ("trajectory_id", "task_id")}
    return pa.table({"logged_at": last["logged_at"], **text})


def _counts(steps: Steps, nodes: Nodes, names: Names) -> pa.Table:
    lengths = np.diff(steps.trajectory_start)
    num_total, num_success = count_trajectories(
        trajectory_of_visit=np.repeat(np.arange(len(lengths)), lengths),
        node_of_visit=names.of_node[nodes.state_of_step],
        is_success=steps.is_success[steps.trajectory_start[1:] - 1],
        num_nodes=names.table.num_rows,
    )
    counted = names.table.append_column("num_total", pa.array(num_total))
    counted = counted.append_column("num_success", pa.array(num_success))
    return counted.filter(pa.array(num_total > 0))
