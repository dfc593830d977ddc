"""The workers of a Ray cluster, which do pieces of work as the processes of `pool.py` do.

All machines of the cluster have this package, and see the files under the same paths. A worker gets
the work once; the driver holds a few pieces at a time, however many workers there are. A worker
that dies may have done all of its piece or none, and nobody can tell: it is done again.

Ray is imported when a cluster is connected, since it reads its environment at that moment.
"""

import logging
import os
import platform
import socket
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from graphcredit.store.errors import (
    EngineError,
    GraphcreditError,
    MissingDependencyError,
    OptionError,
)
from graphcredit.store.extras import how_to_install
from graphcredit.store.workers.pool import RETRIES

_PIECES_PER_CPU = 2
"""One being done and one waiting, so that no worker waits for the driver."""

_CONNECT_SECONDS = 10

_ALONE = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # With this, a cluster of one machine listens on its loopback address only.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    # Ray would give a piece that outgrows the memory to one worker after the other, for ever.
    "RAY_task_oom_retries": str(RETRIES),
}
"""Environment of a cluster that is started here and ends with the command."""

Piece = TypeVar("Piece")
Answer = TypeVar("Answer")


@contextmanager
def connect(address: str | None = None) -> Generator["RayPool"]:
    """Connect to a Ray cluster, and leave it at the end.

    Args:
        address: `HOST:PORT` of its head, or what else `ray.init` takes; by default the environment
            variable RAY_ADDRESS, or else `local`: a cluster of this machine, started for the
            purpose.

    Raises:
        EngineError: Nothing answers there.
        OptionError: It is no address.
        MissingDependencyError: The extra `ray` is not installed.
    """
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    if address == "local":
        os.environ.update(_ALONE)
    ray = _ray()
    try:
        if ":" in address:
            _knock(address)
        alone = {"include_dashboard": False} if address == "local" else {}
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **alone)
    except (OSError, ValueError) as error:
        kind = OptionError if isinstance(error, ValueError) else EngineError
        raise kind(
            f"a Ray cluster must answer at {address!r}: {error}. Start one with `ray start "
            "--head`, give --engine ray:HOST:PORT, or use --engine local."
        ) from error
    try:
        yield RayPool()
    finally:
        ray.shutdown()


class RayPool:
    """The workers of the Ray cluster that this process is connected to."""

    def __init__(self) -> None:
        self._ray = _ray()
        self._do = self._ray.remote(max_retries=RETRIES)(_do)

    def in_order(
        self,
        work: Callable[[Iterator[Piece]], Iterator[tuple[Piece, Answer]]],
        pieces: Iterable[Piece],
        files_of: Callable[[Piece], Iterable[Path]],
    ) -> Generator[Answer]:
        """Yield the answers in the order of the pieces.

        Args:
            work: Takes pieces, and yields each with its answer; see `WorkerPool`.
            pieces: What is to be done.
            files_of: Returns the files of a piece, which each worker must see.

        Raises:
            EngineError: A worker does not see a file, or a piece killed too many of them.
        """
        # A list keeps Ray from sending the work itself with every piece.
        shared = [self._ray.put((work, files_of))]
        num_cpus = int(self._ray.cluster_resources().get("CPU", 1))
        waiting: deque[Any] = deque()
        for piece in pieces:
            if len(waiting) >= _PIECES_PER_CPU * num_cpus:
                yield _answer(waiting.popleft())
            waiting.append(self._do.remote(shared, piece))
        while waiting:
            yield _answer(waiting.popleft())


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise MissingDependencyError(
            "--engine ray needs the package 'ray', which is not installed: "
            f"{how_to_install('ray')}, or use --engine local"
        ) from None
    return ray


def _knock(address: str) -> None:
    """Raise OSError at once where Ray would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()


def _answer(promise: Any) -> Any:
    from ray.exceptions import RayError, RayTaskError

    try:
        return _ray().get(promise)
    except RayTaskError as error:
        if isinstance(error.cause, GraphcreditError):
            raise error.cause from None
        raise
    except RayError as error:
        raise EngineError(
            f"a piece must be done by one of the {RETRIES + 1} workers that it is given to: none "
            f"did it. {error} If memory was short, have fewer CPUs share it, or use --engine local."
        ) from error


def _do(shared: list[Any], piece: Any) -> Any:
    """Return what one piece comes to; this runs in a worker."""
    work, files_of = _work_of(*shared)
    for path in files_of(piece):
        if not path.exists():
            raise EngineError(
                f"every machine of the cluster must see the files under the same path: {path} is "
                f"not there on {platform.node()}. Mount it, or use --engine local."
            )
    ((_, answer),) = work(iter([piece]))
    return answer


@lru_cache(maxsize=1)
def _work_of(reference: Any) -> Any:
    """Return the work that is shared, unpacked once in each worker."""
    return _ray().get(reference)
