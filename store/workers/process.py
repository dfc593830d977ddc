"""One worker process, as its parent sees it.

The parent sends the work, a function, and then pieces of work; None says that there are no more.
The worker calls the function with an iterator of the pieces, and sends what that yields as it
comes. It exits when the function returns; an error of the function is sent instead, and raised by
the parent. The worker imports no script of the user's, so a script needs no `__main__` guard.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, Pipe
from typing import IO, Any

_STDERR = 2


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
        """Send it its work."""
        self.send(sys.path)
        self.send(work)

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
