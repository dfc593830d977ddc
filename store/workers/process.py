"""One worker process, as its parent sees it.

The parent sends the work, a function, and then pieces of work; None says that there are no more.
The worker calls the function with an iterator of the pieces, and sends what that yields as it
comes. It exits when the function returns; an error of the function is sent instead, and raised by
the parent. Work that has a function or class of the user's script makes the worker run that script
first, as `__mp_main__`, like those of `multiprocessing`: such a script needs a `__main__` guard,
and no other does.
"""

import os
import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, Pipe
from multiprocessing.spawn import get_preparation_data
from typing import IO, Any

_STDERR = 2

_OF_SCRIPT = re.compile(rb"\x8c(\x08__main__|\x0b__mp_main__)")
"""The name of the script's module as a whole string of a pickle: its length and then itself."""


class WorkerProcess:
    """A child process. It dies with this one, and leaves Ctrl-C to it."""

    def __init__(
        self,
        *,
        environment: Mapping[str, str] | None = None,
        descriptors: Iterable[int] = (),
        output: int | IO[bytes] = _STDERR,
    ) -> None:
        """Start a process, without waiting until it runs.

        Args:
            environment: Its environment; by default that of this process.
            descriptors: Open files that it inherits, under the same numbers.
            output: Where its output and its errors go.

        Raises:
            OSError: The system starts no more processes, or opens no more files.
        """
        self.connection: Connection[Any, Any]
        self.connection, other = Pipe()
        try:
            with other, _interrupts_blocked():
                self._process = subprocess.Popen(
                    # -P: a module in the user's working directory must not shadow ours.
                    [
                        *(sys.executable, "-P", "-m", "graphcredit.store.workers.child"),
                        str(other.fileno()),
                    ],
                    pass_fds=[other.fileno(), *descriptors],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env=environment,
                )
        except OSError:
            self.connection.close()
            raise

    def begin(self, work: Callable[[Iterator[Any]], Iterator[Any]]) -> None:
        """Send it its work, and where the user's script is if that defines some of it."""
        pickled = pickle.dumps(work)
        self.send(sys.path)
        self.send(_script() if _OF_SCRIPT.search(pickled) else {})
        with suppress(OSError):
            self.connection.send_bytes(pickled)

    def send(self, piece: Any) -> None:
        """Send it a piece of work, or None; that it is dead is noticed by `receive`."""
        with suppress(OSError):
            self.connection.send(piece)

    def receive(self) -> tuple[Exception | None, Any] | None:
        """Return the error that ended its work, or an answer; None if the process has ended."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            return None

    def wait(self) -> int:
        """Wait for its end, and return its exit code: below 0 the signal that killed it."""
        code = self._process.wait()
        self.connection.close()
        return code

    def kill(self) -> None:
        """End it, whatever it does; `wait` must follow."""
        self._process.kill()


def _script() -> dict[str, str]:
    """Return what tells a child the script: its module or its path; nothing in a notebook."""
    data = get_preparation_data("worker")
    return {key: value for key, value in data.items() if key.startswith("init_main_from_")}


@contextmanager
def _interrupts_blocked() -> Generator[None]:
    """Block Ctrl-C, which reaches all processes of a terminal, in a child that is started here."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def shared_environment(num_workers: int, num_processors: int) -> dict[str, str]:
    """Return an environment in which each worker's libraries use its share of the processors."""
    return {"OMP_NUM_THREADS": str(max(1, num_processors // num_workers)), **os.environ}
