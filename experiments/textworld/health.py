"""Read from a run's store how much signal each iteration offered to training."""

from contextlib import closing
from pathlib import Path

import polars as pl

from graphcredit.store import open_store
from graphcredit.store.sql.catalog import connect

Health = dict[str, float | None]

_QUERY = """
    SELECT iteration,
           avg(state_group_size) AS state_group_size,
           avg((state_group_size = 1)::DOUBLE) AS alone_share,
           avg(is_degenerate_group::DOUBLE) AS degenerate_share,
           avg(({advantage} = 0)::DOUBLE) AS zero_share
    FROM credit GROUP BY iteration
"""


def health(store: Path, estimator: str) -> dict[int, Health]:
    """Return shares of steps and means over steps by iteration; empty without a store.

    - state_group_size: mean number of steps of the group from the same state, this one included.
    - alone_share: share of steps without another such step.
    - degenerate_share: share of steps in groups whose returns are all equal.
    - zero_share: share of steps whose advantage is 0, including steps that training leaves out.
    """
    if not (store / "store.json").exists():
        return {}
    query = _QUERY.format(advantage=f"{estimator}_advantage")
    with closing(connect(open_store(store))) as connection:
        rows = pl.DataFrame(connection.sql(query).to_arrow_table()).rows(named=True)
    return {int(row.pop("iteration")): row for row in rows}
