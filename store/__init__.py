"""The store: what is on disk, how it is read, written, queried and checked.

`connect`, which needs DuckDB, is imported when it is first used.
"""

from typing import TYPE_CHECKING, Any

from graphcredit.store.layout import Shard, Store, create_store, open_store
from graphcredit.store.parquet.shards import read_steps

if TYPE_CHECKING:
    from graphcredit.store.sql.catalog import connect

__all__ = ["Shard", "Store", "connect", "create_store", "open_store", "read_steps"]


def __getattr__(name: str) -> Any:
    if name == "connect":
        from graphcredit.store.sql.catalog import connect

        return connect
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
