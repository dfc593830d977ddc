"""Trajectories of earlier iterations that lend their transitions to the graph of this one."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.credit.steps.batches import read_rows
from graphcredit.credit.steps.complete import TEXT_COLUMNS
from graphcredit.store.layout import LOGGED_STATE, Shard, Store
from graphcredit.store.parquet.numbers import numpy_of
from graphcredit.store.parquet.shards import conform, open_parquet, step_columns
from graphcredit.store.parquet.states import with_states

_LAST = "\U0010ffff"
"""Sorts after every id of this iteration, so that its states are numbered as without a window."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """The step shards of the iterations before one, as far as the window reaches."""

    shards: tuple[Shard, ...]

    @classmethod
    def before(
        cls, store: Store, run_id: str, iteration: int, reach: int, state: str = LOGGED_STATE
    ) -> "Window":
        """Return the window of the `reach` iterations before one; those there are.

        `state` names the states to read.
        """
        first = max(0, iteration - reach)
        numbers = [n for n in store.iterations(run_id) if first <= n < iteration]
        shards = (shard for number in numbers for shard in store.shards(run_id, number))
        return cls(shards=tuple(shard.with_state(state) for shard in shards))

    def read(self, tasks: pa.Array, columns: Sequence[str]) -> pa.Table | None:
        """Return the steps of some tasks, or None where there are none.

        Their trajectory ids are made different from those of any other iteration.
        """
        tables = [table for shard in self.shards for table in _read(shard, tasks, columns)]
        return pa.concat_tables(tables) if tables else None


def _read(shard: Shard, tasks: pa.Array, names: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the steps of some tasks; row groups without any are not read."""
    with open_parquet(shard.path, dictionaries=TEXT_COLUMNS) as file:
        task = conform(
            file.read(columns=["task_id"]), step_columns(["task_id"]), where=str(shard.path)
        )["task_id"]
        is_wanted = numpy_of(pc.is_in(task, tasks))
        rows = np.flatnonzero(is_wanted)
        parts = list(read_rows(file, names, rows))
        if parts:
            yield _renamed(with_states(pa.concat_tables(parts), shard, rows), shard, names)


def _renamed(table: pa.Table, shard: Shard, names: Sequence[str]) -> pa.Table:
    columns = step_columns(names)
    renamed = ids_of_earlier(table["trajectory_id"], shard.iteration)
    position = table.schema.get_field_index("trajectory_id")
    table = table.set_column(position, "trajectory_id", renamed.dictionary_encode())
    return conform(table, columns, where=str(shard.path), keep_dictionaries=True)


def ids_of_earlier(ids: pa.ChunkedArray, iteration: int) -> pa.ChunkedArray:
    """Return trajectory ids of an iteration as no other iteration has them; they sort last."""
    return pc.binary_join_element_wise(f"{_LAST}{iteration}", ids.cast(pa.string()), "/")
