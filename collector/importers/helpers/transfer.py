"""Send a piece that was read from one process to another: tables as a file in memory."""

import mmap
import os
import tempfile
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from typing import IO

import pyarrow as pa

from graphcredit.collector.importers.helpers.pieces import PieceRead
from graphcredit.collector.importers.steps import Partition


def send(found: PieceRead, connection: Connection, to: int) -> None:
    """Send what a piece became.

    Args:
        found: The piece.
        connection: A pipe to the other process.
        to: The id of that process.
    """
    tables = found.batch.tables
    with _memory_file() as file:
        for table in tables.values():
            with pa.ipc.new_stream(file, table.schema) as writer:
                writer.write_table(table)
        file.flush()
        bare = replace(found, batch=replace(found.batch, tables={}))
        connection.send((bare, tuple(tables)))
        if tables:
            send_handle(connection, file.fileno(), to)


def receive(connection: Connection) -> PieceRead:
    """Return what a piece became in the other process.

    Raises:
        EOFError, OSError: The other process has ended.
    """
    found, partitions = connection.recv()
    if not partitions:
        return found
    descriptor = recv_handle(connection)
    try:
        mapped = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    finally:
        os.close(descriptor)
    source = pa.BufferReader(pa.py_buffer(mapped))
    tables: dict[Partition, pa.Table] = {}
    for partition in partitions:
        with pa.ipc.open_stream(source) as reader:
            tables[partition] = reader.read_all()
    return replace(found, batch=replace(found.batch, tables=tables))


def _memory_file() -> IO[bytes]:
    """Open a file without a name: the kernel frees it however its users end."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("graphcredit-import"), "w+b")
    return tempfile.TemporaryFile()
