"""Counts per (task, state) over the trajectories of a run: `history/` on disk.

A state is known by its `identity`, which the rules leave of its texts, and by the `signature` of
its admissible actions; without rules by its text. The counts are kept in DuckDB under hashes of
these, and joined with a batch's nodes. The texts stand beside them, for the file; they go to disk
where they outgrow memory. Only states in which a trajectory acted are there: no goal, and no end of
a failure that is nothing else.
"""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

import json
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.credit.steps.arrays import Floats, Ints
from graphcredit.store.files.atomic import atomic_path
from graphcredit.store.files.scratch import ScratchFolder
from graphcredit.store.files.tables import parquet_writer
from graphcredit.store.options import options_as_json
from graphcredit.store.parquet.numbers import arrow_of, numpy_of
from graphcredit.store.parquet.shards import conform, open_parquet
from graphcredit.store.provenance.configuration import (
    HISTORY_VERSION,
    VERSION_KEY,
    history_configuration,
)
from graphcredit.store.schema import CONFIGURATION_KEY, STATE_SCORE_COLUMNS, arrow_schema

_SCHEMA = arrow_schema(STATE_SCORE_COLUMNS)
_MEMORY = "512MiB"
_LOADED_ROWS = 8_192
_SORTED_BYTES = 32 << 20
"""Of the texts that are sorted at once."""
_HASH = "unhex(sha256(coalesce(identity, state)))"
_KEY = f"{_HASH} AS key, coalesce(signature, -1) AS signed"
_KEYS = "task_id, key, signed"

NAME_SCHEMA = pa.schema(
    [(name, _SCHEMA.field(name).type) for name in ("task_id", "state", "identity", "signature")]
)
"""What a state is known by."""


@runtime_checkable
class StateScores(Protocol):
    """What a state is worth by its counts: options of the estimator that reads the history."""

    def score(self, num_total: Ints, num_success: Ints, num_ended: Ints) -> Floats:
        """Return [n] the score of states."""
        ...

    def num_rollouts(self, score: Floats) -> Ints:
        """Return [n] how many rollouts to start at states of these scores."""
        ...


class RunHistory:
    """How many trajectories acted in each state of a run, over the iterations added so far."""

    def __init__(self, merge: Mapping[str, Any] | None = None) -> None:
        """Start with nothing counted.

        Args:
            merge: How texts become states, as it is written to disk.
        """
        self.merge = dict(merge or {})
        """How texts became the states that are counted."""
        self.iterations: dict[int, str] = {}
        """The iterations that are counted, each with the fingerprint of its step shards."""
        self.num_trajectories = 0
        """Complete trajectories that are counted."""
        import duckdb

        self._scratch = ScratchFolder()
        self._database = duckdb.connect(
            ":memory:", config={"memory_limit": _MEMORY, "temp_directory": str(self._scratch.path)}
        )
        keys = "task_id VARCHAR, key BLOB, signed BIGINT"
        self._database.execute(f"CREATE TABLE names ({keys}, state VARCHAR, identity VARCHAR)")
        self._database.execute(
            f"CREATE TABLE counts ({keys}, num_total BIGINT, num_success BIGINT)"
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return what `look_up` and `signed` need: no texts."""
        counts = self._database.sql("FROM counts").to_arrow_table()
        own = ("merge", "iterations", "num_trajectories")
        return {"counts": counts} | {name: getattr(self, name) for name in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()
        self._insert("counts", state.pop("counts"))
        self.__dict__ |= state

    @classmethod
    def load(cls, path: Path) -> "RunHistory":
        """Read what `save` wrote; an empty history where no file is, or one by another formula."""
        history = cls()
        if not path.exists():
            return history
        with open_parquet(path) as file:
            made_by = history_configuration(file.schema_arrow)
            if made_by is not None:
                for batch in file.iter_batches(_LOADED_ROWS):
                    table = pa.Table.from_batches([batch])
                    table = conform(table, STATE_SCORE_COLUMNS, where=str(path))
                    history._insert("counts", history.keyed(table))
                history.merge = made_by["merge"]
                history.iterations = {int(key): value for key, value in made_by["steps"].items()}
                history.num_trajectories = made_by["num_trajectories"]
        return history

    def starts(self, iterations: Mapping[int, str]) -> bool:
        """Return whether what is counted are the first of these iterations, unchanged since."""
        first = sorted(iterations)[: len(self.iterations)]
        return self.iterations == {number: iterations[number] for number in first}

    def keyed(self, counts: pa.Table) -> pa.Table:
        """Keep the names of states, and return their counts for `add`, without the texts.

        Args:
            counts: `NAME_SCHEMA` and `num_total, num_success`; a state may stand there repeatedly.
        """
        self._database.register("delta", counts)
        self._database.execute(
            f"""
            INSERT INTO names
            SELECT {_KEYS}, min(state), any_value(identity)
            FROM (SELECT *, {_KEY} FROM delta) ANTI JOIN names USING ({_KEYS}) GROUP BY ALL
            """
        )
        keyed = self._database.sql(
            f"SELECT task_id, {_KEY}, num_total, num_success FROM delta"
        ).to_arrow_table()
        self._database.unregister("delta")
        return keyed

    def add(
        self, iteration: int, fingerprint: str, counts: pa.Table, num_trajectories: int
    ) -> None:
        """Count an iteration."""
        self._insert("counts", counts)
        self.iterations[iteration] = fingerprint
        self.num_trajectories += num_trajectories

    def look_up(self, names: pa.Table) -> tuple[Ints, Ints]:
        """Return n and k of states.

        Args:
            names: [n] `NAME_SCHEMA`; a goal, whose state is null, has neither.

        Returns:
            [n] trajectories that acted in each, and [n] the successful ones.
        """
        row = arrow_of(np.arange(names.num_rows))
        wanted = names.append_column("row", row)
        self._database.register("wanted", wanted)
        sums_of_row = self._database.execute(
            f"""
            SELECT row, sum(num_total)::BIGINT, sum(num_success)::BIGINT
            FROM (SELECT task_id, row, {_KEY} FROM wanted WHERE state IS NOT NULL)
            JOIN counts USING ({_KEYS}) GROUP BY row
            """
        ).fetchnumpy()
        self._database.unregister("wanted")
        row, *sums = sums_of_row.values()
        num_total, num_success = (np.zeros(names.num_rows, np.int64) for _ in range(2))
        num_total[row], num_success[row] = sums
        return num_total, num_success

    def signed(self, names: pa.Table) -> pa.Table:
        """Return names; one without actions gets those of its earlier state, if there is one.

        Of several, it is the one in which most trajectories acted.

        Args:
            names: [n] `NAME_SCHEMA`.
        """
        unsigned = names.append_column("row", arrow_of(np.arange(names.num_rows)))
        unsigned = unsigned.filter(names["signature"].is_null())
        self._database.register("unsigned", unsigned)
        earlier = self._database.execute(
            f"""
            SELECT row, arg_max(signed, (visits, -signed)) AS signature
            FROM (
                SELECT row, signed, sum(num_total) AS visits
                FROM (SELECT row, task_id, {_HASH} AS key FROM unsigned WHERE state IS NOT NULL)
                JOIN counts USING (task_id, key) WHERE signed >= 0 GROUP BY ALL
            )
            GROUP BY row
            """
        ).fetchnumpy()
        self._database.unregister("unsigned")
        signature = numpy_of(pc.fill_null(names["signature"], -1)).copy()
        signature[earlier["row"]] = earlier["signature"]
        column = arrow_of(signature, is_null=signature < 0)
        return names.set_column(names.schema.get_field_index("signature"), "signature", column)

    def save(self, path: Path, scores: StateScores) -> None:
        """Write the counts, with the score of each state and the rollouts to allocate there."""
        metadata = {**_SCHEMA.metadata, CONFIGURATION_KEY: json.dumps(self._made_by(scores))}
        schema = _SCHEMA.with_metadata(metadata)
        with atomic_path(path) as temporary, parquet_writer(temporary, schema) as writer:
            for table in self._sorted():
                writer.write_table(self._scored(table, scores).cast(schema))

    def _sorted(self) -> Iterator[pa.Table]:
        """Yield the states by task and name: some tasks at once, for a sort must fit in memory."""
        sizes = self._database.sql(
            "SELECT task_id, sum(strlen(state)) FROM names GROUP BY task_id ORDER BY task_id"
        ).fetchall()
        ends = np.cumsum([size for _, size in sizes]) // _SORTED_BYTES
        for _, tasks in groupby(zip(ends.tolist(), sizes, strict=True), lambda item: item[0]):
            names = [task for _, (task, _) in tasks]
            yield self._database.sql(
                f"""
                SELECT task_id, state, identity, nullif(signed, -1) AS signature, num_total,
                    num_success
                FROM (FROM names WHERE task_id BETWEEN $first AND $last) JOIN (
                    SELECT {_KEYS}, sum(num_total)::INTEGER AS num_total,
                        sum(num_success)::INTEGER AS num_success
                    FROM counts WHERE task_id BETWEEN $first AND $last GROUP BY ALL
                ) USING ({_KEYS})
                ORDER BY task_id, state, identity, signed
                """,
                params={"first": names[0], "last": names[-1]},
            ).to_arrow_table()

    def _scored(self, table: pa.Table, scores: StateScores) -> pa.Table:
        num_total = numpy_of(table["num_total"]).astype(np.int64)
        num_success = numpy_of(table["num_success"]).astype(np.int64)
        ended = np.full(len(num_total), self.num_trajectories)
        score = scores.score(num_total, num_success, ended)
        table = table.append_column("score", arrow_of(score))
        rollouts = arrow_of(scores.num_rollouts(score), pa.int32())
        return table.append_column("num_rollouts", rollouts)

    def _made_by(self, scores: StateScores) -> dict[str, Any]:
        return {
            VERSION_KEY: HISTORY_VERSION,
            "options": options_as_json(scores),
            "merge": self.merge,
            "steps": self.iterations,
            "num_trajectories": self.num_trajectories,
        }

    def _insert(self, name: str, rows: pa.Table) -> None:
        self._database.register("delta", rows)
        self._database.execute(f"INSERT INTO {name} FROM delta")
        self._database.unregister("delta")
