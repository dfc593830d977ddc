"""The store on disk: its schema and layout, and how it is read, written, queried and checked.

Each name is imported when it is first used, since Arrow and DuckDB take long to load.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphcredit.store.layout import AnyStore, Shard, Store, create_store, open_store
    from graphcredit.store.parquet.shards import read_steps
    from graphcredit.store.sql.catalog import connect

__all__ = ["AnyStore", "Shard", "Store", "connect", "create_store", "open_store", "read_steps"]

_MODULES = {"connect": "sql.catalog", "read_steps": "parquet.shards"}
"""Name to its module; the others are in `layout`."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'layout')}"), name)
