"""What a query returns."""

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryResult:
    """The rows of a query."""

    table: pa.Table
    is_cut: bool
    """Whether the query has more rows than `table`."""
    num_left_out: int | None
    """Number of further rows; None if counting them would have taken too long."""
    seconds: float
    """Duration of the query."""
    doubts: tuple[str, ...] = ()
    """Warnings for the reader, for example about stale credit (`provenance.freshness.doubts`)."""
