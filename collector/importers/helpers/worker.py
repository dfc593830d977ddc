"""The program of a helper: reads pieces that it is told, until nobody tells it any more."""

import gc
import os
import signal
import sys
from multiprocessing.connection import Connection

from graphcredit.collector.importers.helpers.pieces import read_piece
from graphcredit.collector.importers.helpers.transfer import send


def main() -> None:
    """Answer the import at the other end of the pipe, whose descriptor is the argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the import ends it
    gc.disable()
    with Connection(int(sys.argv[1])) as connection:
        try:
            connection.send(True)  # it has started
            options = connection.recv()
            while True:
                send(read_piece(connection.recv(), options), connection, os.getppid())
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


if __name__ == "__main__":
    main()
