"""Files that appear whole or not at all."""

import os
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

TEMPORARY_SUFFIX = ".tmp"

ROW_GROUP_ROWS = 65_536
ROW_GROUP_BYTES = 128 << 20
_DICTIONARY_COLUMNS = frozenset({"state", "next_state", "task_id", "trajectory_id", "action"})
_DICTIONARY_PAGE_BYTES = 32 << 20
"""Large enough that a row group of long states keeps its dictionary, which readers live on."""


@contextmanager
def atomic_path(path: Path) -> Generator[Path]:
    """Yield a temporary path in the same directory; on success it is synced and renamed to `path`.

    If the body raises, the temporary file is removed and `path` stays as it was. If the process is
    killed, a `*.tmp` file is left behind, which no reader looks at.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}{TEMPORARY_SUFFIX}")
    try:
        yield temporary
        sync_file(temporary)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


@contextmanager
def atomic_directory(path: Path) -> Generator[Path]:
    """Yield a new directory beside `path`; on success it is synced and takes that name.

    A directory that has the name is put aside just before, and removed after: a reader finds the
    old one, the new one, or for a moment none, always whole. If the process is killed, `*.tmp`
    directories are left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}{TEMPORARY_SUFFIX}")
    temporary.mkdir()
    try:
        yield temporary
        for folder, _, names in os.walk(temporary):
            for name in names:
                sync_file(Path(folder, name))
            sync_directory(Path(folder))
        aside = _put_aside(path)
        os.replace(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync_directory(path.parent)
    if aside is not None:
        shutil.rmtree(aside)


def remove_directory(path: Path) -> None:
    """Remove a directory, if it is there, so that no reader finds a part of it under its name."""
    aside = _put_aside(path)
    if aside is not None:
        shutil.rmtree(aside)


def _put_aside(path: Path) -> Path | None:
    """Give a directory, if it is there, a name that no reader looks at; return that."""
    if not path.exists():
        return None
    aside = path.with_name(f"{path.name}.{secrets.token_hex(4)}{TEMPORARY_SUFFIX}")
    os.replace(path, aside)
    return aside


def write_table(table: pa.Table, path: Path) -> None:
    """Write a table as Parquet, the way docs/store.md asks for; see `write_table_unsynced`.

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


def parquet_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Open a Parquet file for tables of one schema, written the way docs/store.md asks for.

    A reader gets plain text columns: whether the writer held a dictionary is not its business.
    """
    dictionaries: Any = [name for name in schema.names if name in _DICTIONARY_COLUMNS]
    writer = pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=dictionaries,
        dictionary_pagesize_limit=_DICTIONARY_PAGE_BYTES,
        store_schema=False,
    )
    writer.add_key_value_metadata(schema.metadata or {})
    return writer


def sync_file(path: Path) -> None:
    """Wait until a file's content is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Wait until a directory's entries are on disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
