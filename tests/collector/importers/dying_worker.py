"""A helper that is killed: the second piece that it sends ends in the middle of its bytes."""

import os
import signal
import struct
from multiprocessing.connection import Connection

from graphcredit.collector.importers.helpers import transfer, worker
from graphcredit.collector.importers.helpers.pieces import PieceRead

_sent: list[int] = []


def _send(found: PieceRead, connection: Connection, to: int) -> None:
    if not _sent:
        _sent.append(1)
        transfer.send(found, connection, to)
        return
    # A message is its length and then its bytes.
    os.write(connection.fileno(), struct.pack("!i", 1000) + b"half a message")
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    worker.send = _send
    worker.main()
