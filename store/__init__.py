"""The store: what is on disk, how it is read, written, queried and checked."""

from graphcredit.store.layout import Shard, Store, create_store, open_store
from graphcredit.store.parquet.shards import read_steps

__all__ = ["Shard", "Store", "create_store", "open_store", "read_steps"]
