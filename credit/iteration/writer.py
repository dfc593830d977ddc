"""Credit shards and graph tables of one iteration.

Everything is written to temporary files beside its final place. Only when the last one is on disk
are they renamed, one after the other, so an interrupted run leaves the previous credit as it was. A
machine that dies during the renames leaves some shards with old credit and some with new, each of
them whole; `configuration` in their metadata tells them apart, and the next run keeps neither.
Readers of the run are kept out during the renames.
"""

import json
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from graphcredit.credit.iteration.columns import empty_column, read_keys, to_arrow
from graphcredit.store.files.atomic import (
    naming,
    remove_left_overs,
    sync_directory,
    sync_file,
    temporary_path,
)
from graphcredit.store.files.tables import parquet_writer, write_table_unsynced
from graphcredit.store.layout import Shard, Store
from graphcredit.store.parquet.snapshot import replacing
from graphcredit.store.schema import (
    CONFIGURATION_KEY,
    RULES_MET_KEY,
    SCHEMA_VERSION,
    SCHEMA_VERSION_KEY,
)

_WAITING_WRITES = 4


class CreditWriter:
    """Collects credit columns batch by batch and writes each shard as soon as it is whole.

    One process at a time writes the credit of an iteration, its caller sees to that: so temporary
    files, of which there may be thousands, need no lock of their own to be told from left-overs.
    """

    def __init__(
        self,
        store: Store,
        shards: Sequence[Shard],
        num_rows: Sequence[int],
        *,
        configuration: dict[str, Any],
        rules_met: Mapping[str, int],
    ) -> None:
        """Take what is known of the iteration before any of it is credited.

        Args:
            store: The store.
            shards: All its step shards.
            num_rows: [shards] their rows.
            configuration: How its columns are made, by estimator.
            rules_met: Of the user's rules of states, each one that applied, and how often.
        """
        self._store = store
        self._shards = shards
        self._num_rows = num_rows
        self._missing = list(num_rows)
        self._columns: dict[int, dict[str, NDArray[np.generic]]] = {}
        self._metadata = {
            SCHEMA_VERSION_KEY: str(SCHEMA_VERSION).encode(),
            CONFIGURATION_KEY: json.dumps(configuration, sort_keys=True).encode(),
        }
        if rules_met:
            self._metadata[RULES_MET_KEY] = json.dumps(rules_met).encode()
        self._renames: dict[Path, Path] = {}
        self._tables: dict[Path, pq.ParquetWriter] = {}
        names = {shard.credit_path.name for shard in shards}
        for folder in {shard.credit_path.parent for shard in shards}:
            remove_left_overs(folder, names.__contains__)
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._writes: deque[Future[None]] = deque()

    def __enter__(self) -> "CreditWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._pool.shutdown(cancel_futures=error is not None)
            for path, table in self._tables.items():
                with naming(path):
                    table.close()
            if error is None:
                self._commit()
        finally:
            for temporary in self._renames:
                temporary.unlink(missing_ok=True)

    def put(
        self, shard: int, rows: NDArray[np.int64], columns: Mapping[str, NDArray[np.generic]]
    ) -> None:
        """Take the credit of some rows of a shard.

        Args:
            shard: Position of the shard.
            rows: [n] rows of the shard, none of them given before.
            columns: `{name: [n] values}`, the same names for every call.
        """
        if len(rows) == self._num_rows[shard]:
            whole = dict(columns)
        else:
            whole = self._columns.setdefault(
                shard, {k: empty_column(v.dtype, self._num_rows[shard]) for k, v in columns.items()}
            )
            for name, values in columns.items():
                whole[name][rows] = values
        self._missing[shard] -= len(rows)
        if not self._missing[shard]:
            self._columns.pop(shard, None)
            written = self._shards[shard]
            self._submit(written.credit_path, self._write_shard, written, whole)

    def append(self, path: Path, table: pa.Table) -> None:
        """Add rows to a table of the iteration, in a row group of their own."""
        if path not in self._tables:
            path.parent.mkdir(parents=True, exist_ok=True)
            remove_left_overs(path.parent, path.name.__eq__)
            schema = table.schema.with_metadata((table.schema.metadata or {}) | self._metadata)
            with naming(path):
                self._tables[path] = parquet_writer(self._temporary(path), schema)
        self._submit(path, self._tables[path].write_table, table)

    def _submit(self, path: Path, write: Callable[..., None], *arguments: object) -> None:
        """Write in the background, a few at a time, so that waiting tables do not fill memory."""
        self._writes.append(self._pool.submit(_naming, path, write, *arguments))
        while len(self._writes) > _WAITING_WRITES:
            self._writes.popleft().result()

    def _temporary(self, path: Path) -> Path:
        temporary = temporary_path(path)
        self._renames[temporary] = path
        return temporary

    def _write_shard(self, shard: Shard, columns: dict[str, NDArray[np.generic]]) -> None:
        shard.credit_path.parent.mkdir(parents=True, exist_ok=True)
        keys = read_keys(shard.path, dictionaries=["trajectory_id"])
        arrays = {name: to_arrow(name, values) for name, values in columns.items()}
        table = pa.table(dict(zip(keys.column_names, keys.columns, strict=True)) | arrays)
        table = table.replace_schema_metadata(self._metadata)
        write_table_unsynced(table, self._temporary(shard.credit_path))

    def _commit(self) -> None:
        for write in self._writes:
            write.result()
        for temporary in self._renames:
            sync_file(temporary)
        with replacing(self._store, self._shards[0].run_id):
            for temporary, path in self._renames.items():
                os.replace(temporary, path)
        for directory in {path.parent for path in self._renames.values()}:
            sync_directory(directory)


def _naming(path: Path, write: Callable[..., None], *arguments: object) -> None:
    with naming(path):
        write(*arguments)
