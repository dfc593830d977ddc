"""Counts per (task, state) over the trajectories of a run: `history/` on disk.

The counts are kept in DuckDB, which joins them with a batch's nodes and spills to disk where they
outgrow memory. Only states in which a trajectory acted are there: no goal, and no end of a failure
that is nothing else.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from graphcredit.credit.merging.recognise import NAME_SCHEMA
from graphcredit.credit.steps.arrays import Floats, Ints
from graphcredit.store.files.tables import write_table
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

        self._counts = duckdb.connect(":memory:")
        self._counts.execute(
            "CREATE TABLE counts (task_id VARCHAR, state VARCHAR, identity VARCHAR, "
            "signature BIGINT, num_total BIGINT, num_success BIGINT)"
        )

    def __getstate__(self) -> dict[str, Any]:
        counts = self._counts.sql("FROM counts").to_arrow_table()
        return self.__dict__ | {"_counts": counts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()
        self._insert(state.pop("_counts"))
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
                table = conform(file.read(), STATE_SCORE_COLUMNS, where=str(path))
                history._insert(table)
                history.merge = made_by["merge"]
                history.iterations = {int(key): value for key, value in made_by["steps"].items()}
                history.num_trajectories = made_by["num_trajectories"]
        return history

    def starts(self, iterations: Mapping[int, str]) -> bool:
        """Return whether what is counted are the first of these iterations, unchanged since."""
        first = sorted(iterations)[: len(self.iterations)]
        return self.iterations == {number: iterations[number] for number in first}

    def add(
        self, iteration: int, fingerprint: str, counts: pa.Table, num_trajectories: int
    ) -> None:
        """Count an iteration.

        Args:
            iteration: Its number.
            fingerprint: Of its step shards.
            counts: `recognise.NAME_SCHEMA` and `num_total, num_success`; a state may stand there
                repeatedly.
            num_trajectories: Its complete trajectories.
        """
        self._insert(counts)
        self.iterations[iteration] = fingerprint
        self.num_trajectories += num_trajectories

    def known(self, task_ids: pa.Array) -> pa.Table:
        """Return the states of some tasks that a merge can recognise, sorted by task and name.

        Args:
            task_ids: [num_tasks] each once.
        """
        self._counts.register("wanted", pa.table({"task_id": task_ids}))
        states = self._counts.sql(
            """
            SELECT task_id, state, any_value(identity) AS identity, max(signature) AS signature
            FROM wanted JOIN counts USING (task_id) WHERE identity IS NOT NULL
            GROUP BY ALL ORDER BY task_id, state
            """
        ).to_arrow_table()
        self._counts.unregister("wanted")
        assert states is not None, "a SELECT has a result"
        return states.cast(NAME_SCHEMA)

    def look_up(self, names: pa.Table) -> tuple[Ints, Ints]:
        """Return n and k of states.

        Args:
            names: [n] their `task_id` and `state`; a goal, whose state is null, has neither.

        Returns:
            [n] trajectories that acted in each, and [n] the successful ones.
        """
        row = arrow_of(np.arange(names.num_rows))
        wanted = names.select(["task_id", "state"]).append_column("row", row)
        self._counts.register("wanted", wanted)
        sums_of_row = self._counts.execute(
            """
            SELECT wanted.row, sum(num_total)::BIGINT, sum(num_success)::BIGINT
            FROM wanted JOIN counts USING (task_id, state) GROUP BY wanted.row
            """
        ).fetchnumpy()
        self._counts.unregister("wanted")
        row, *sums = sums_of_row.values()
        num_total, num_success = (np.zeros(names.num_rows, np.int64) for _ in range(2))
        num_total[row], num_success[row] = sums
        return num_total, num_success

    def save(self, path: Path, scores: StateScores) -> None:
        """Write the counts, with the score of each state and the rollouts to allocate there."""
        table = self._counts.sql(
            """
            SELECT task_id, state, any_value(identity) AS identity, max(signature) AS signature,
                   sum(num_total)::INTEGER AS num_total, sum(num_success)::INTEGER AS num_success
            FROM counts GROUP BY ALL ORDER BY task_id, state
            """
        ).to_arrow_table()
        assert table is not None, "a SELECT has a result"
        num_total = numpy_of(table["num_total"]).astype(np.int64)
        num_success = numpy_of(table["num_success"]).astype(np.int64)
        ended = np.full(len(num_total), self.num_trajectories)
        score = scores.score(num_total, num_success, ended)
        table = table.append_column("score", arrow_of(score))
        rollouts = arrow_of(scores.num_rollouts(score), pa.int32())
        table = table.append_column("num_rollouts", rollouts).cast(_SCHEMA)
        metadata = {**_SCHEMA.metadata, CONFIGURATION_KEY: json.dumps(self._made_by(scores))}
        write_table(table.replace_schema_metadata(metadata), path)

    def _made_by(self, scores: StateScores) -> dict[str, Any]:
        return {
            VERSION_KEY: HISTORY_VERSION,
            "options": options_as_json(scores),
            "merge": self.merge,
            "steps": self.iterations,
            "num_trajectories": self.num_trajectories,
        }

    def _insert(self, counts: pa.Table) -> None:
        self._counts.register("delta", counts)
        self._counts.execute(
            "INSERT INTO counts "
            "SELECT task_id, state, identity, signature, num_total, num_success FROM delta"
        )
        self._counts.unregister("delta")
