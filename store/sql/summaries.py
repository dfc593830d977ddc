"""Current summaries of iterations as views."""

from dataclasses import dataclass
from itertools import groupby

from graphcredit.store.layout import Store
from graphcredit.store.provenance.summary import TABLES, summary_paths, summary_state
from graphcredit.store.schema import (
    PARTITION_COLUMNS,
    SUMMARY_ADVANTAGE_COLUMNS,
    SUMMARY_TRAJECTORY_COLUMNS,
)
from graphcredit.store.sql.catalog import Connection
from graphcredit.store.sql.views import BaseView, base_view_sql, literal_path, parquet_source

_COLUMNS = dict(zip(TABLES, (SUMMARY_TRAJECTORY_COLUMNS, SUMMARY_ADVANTAGE_COLUMNS), strict=True))


@dataclass(frozen=True, kw_only=True, slots=True)
class Summarised:
    """Which iterations the views of summaries have."""

    iterations: frozenset[int]
    """Those with a current summary."""
    others: frozenset[int]
    """Those without: their steps have to be read."""


def create_summary_views(
    connection: Connection, store: Store, *, run_id: str, iteration: int | None
) -> Summarised:
    """Create the views `summary_trajectories` and `summary_advantages`.

    They are no views of the store, since they lack the iterations without a current summary.
    """
    shards = store.shards(run_id, iteration)
    states = {
        number: summary_state(store, list(members))
        for number, members in groupby(shards, lambda shard: shard.iteration)
    }
    current = [number for number, state in states.items() if state == "current"]
    for name, columns in _COLUMNS.items():
        view = BaseView(
            name=f"summary_{name}", pattern="", partitions=PARTITION_COLUMNS, columns=columns
        )
        paths = [summary_paths(store, run_id, number)[name].absolute() for number in current]
        sources = [parquet_source(view, [literal_path(str(path)) for path in paths])]
        sql = base_view_sql(view.all_columns(()), sources if current else [])
        connection.execute(f"CREATE VIEW {view.name} AS {sql}")
    return Summarised(iterations=frozenset(current), others=frozenset(states.keys() - current))
