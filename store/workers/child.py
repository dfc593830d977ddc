"""The program of a worker process: it does the pieces of work that its parent sends.

    python -P -m graphcredit.store.workers.child DESCRIPTOR

`process.py` starts it, and describes the messages. When the parent dies, the connection ends, and
this process exits at once, whatever it does.
"""

import os
import pickle
import sys
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from typing import Any

from graphcredit.store.errors import GraphcreditError
from graphcredit.store.workers import RUNS_SCRIPT


def main() -> None:
    """Answer the parent at the other end of the socket whose descriptor is the argument."""
    connection: Connection[Any, Any] = Connection(int(sys.argv[1]))
    messages: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_listen, args=(connection, messages), daemon=True).start()
    try:
        sys.path[:] = pickle.loads(messages.get())
        if script := pickle.loads(messages.get()):
            _run(script)
        work = pickle.loads(messages.get())
        for answer in work(iter(lambda: pickle.loads(messages.get()), None)):
            connection.send((None, answer))
    except Exception as error:
        if not isinstance(error, GraphcreditError):
            error.add_note(f"In a worker process:\n{traceback.format_exc()}")
        with suppress(OSError):
            connection.send((_portable(error), None))


def _run(script: dict[str, str]) -> None:
    """Run the user's script, whose functions the work has, without what its guard keeps back."""
    from multiprocessing.spawn import prepare

    os.environ[RUNS_SCRIPT] = "1"
    try:
        prepare(script)
    finally:
        del os.environ[RUNS_SCRIPT]


def _portable(error: Exception) -> Exception:
    """Return an error that another process can load; those of some libraries cannot be."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _listen(connection: "Connection[Any, Any]", messages: SimpleQueue[bytes]) -> None:
    with suppress(EOFError, OSError):
        while True:
            messages.put(connection.recv_bytes())
    os._exit(1)


if __name__ == "__main__":
    main()
