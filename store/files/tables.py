"""Write tables as Parquet files in the form of docs/store.md, each with its digest."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from graphcredit.store.files.atomic import atomic_path
from graphcredit.store.files.digest import DIGEST_KEY, PLACEHOLDER, seal

ROW_GROUP_ROWS = 65_536
ROW_GROUP_BYTES = 128 << 20
_DICTIONARY_COLUMNS = frozenset({"state", "next_state", "task_id", "trajectory_id", "action"})
_DICTIONARY_PAGE_BYTES = 32 << 20
"""Large enough that a row group of long states stays dictionary-encoded: readers depend on it."""


def write_table(table: pa.Table, path: Path) -> None:
    """Write a table as Parquet, in the form of docs/store.md; see `write_table_unsynced`.

    The file appears under its name only when it is complete and on disk.
    """
    with atomic_path(path) as temporary:
        write_table_unsynced(table, temporary)


def write_table_unsynced(table: pa.Table, path: Path) -> None:
    """Write a table as Parquet: zstd, dictionaries for repeated text, bounded row groups.

    Args:
        table: Any table; its schema metadata goes into the file.
        path: Written in place: use a temporary path.
    """
    row_bytes = max(1, table.nbytes // max(1, table.num_rows))
    with parquet_writer(path, table.schema) as writer:
        writer.write_table(table, max(1, min(ROW_GROUP_ROWS, ROW_GROUP_BYTES // row_bytes)))


class _SealingWriter(pq.ParquetWriter):
    """A Parquet writer that puts a digest into the file when it is closed."""

    def __init__(self, path: Path, schema: pa.Schema, **options: Any) -> None:
        self._path, self._is_whole = path, True
        # pyarrow takes a relative path with a colon for a URI.
        super().__init__(path.absolute(), schema, **options)

    def write_table(self, *arguments: Any, **options: Any) -> None:
        """Write rows; after an error the file is incomplete and gets no digest."""
        try:
            super().write_table(*arguments, **options)
        except BaseException:
            self._is_whole = False
            raise

    def close(self) -> None:
        """Write the footer and the digest."""
        is_open = self.is_open
        if is_open:
            # The digest must be the last key: `verify` looks for it there.
            self.add_key_value_metadata({DIGEST_KEY: PLACEHOLDER})
        super().close()
        if is_open and self._is_whole:
            seal(self._path)

    def __del__(self) -> None:
        """Let go of a file that nobody could close: it is not whole, and perhaps not there."""
        self._is_whole = False
        with suppress(OSError):
            super().__del__()


def parquet_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Open a Parquet file for tables of one schema, in the form of docs/store.md.

    The Arrow schema is not stored, so readers get plain text columns even if the writer's table had
    dictionaries.
    """
    dictionaries: Any = [name for name in schema.names if name in _DICTIONARY_COLUMNS]
    writer = _SealingWriter(
        path,
        schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=dictionaries,
        dictionary_pagesize_limit=_DICTIONARY_PAGE_BYTES,
        store_schema=False,
    )
    # A digest that was copied along with another file's metadata is dropped.
    metadata = {k: v for k, v in (schema.metadata or {}).items() if k != DIGEST_KEY}
    writer.add_key_value_metadata(metadata)
    return writer
