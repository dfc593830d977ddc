"""The pool of worker processes in which stages play, import and credit.

Whatever the work is, the death of a worker means the same. What it had is done again by another
process, at most `RETRIES` times; then an `EngineError` ends the work. An error that the work raises
is no death: it is raised here as itself, and nothing is done again.
"""

import logging
import os
from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import Final, Generic, TypeVar

from graphcredit.store.errors import EngineError, OptionError
from graphcredit.store.plural import counted
from graphcredit.store.workers.process import WorkerProcess, shared_environment

ENGINES: tuple[str, ...] = ("local", "ray")
"""What options name: processes of this machine (local:N), or a cluster (`ray.py`)."""

RETRIES = 3
"""How often a piece of work is given to another worker; one that killed four would kill the fifth.
Ray is told the same number."""


def num_processors() -> int:
    """Return the number of processors that this process may use, at least 1."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1


def num_processes(engine: str) -> int | None:
    """Return the number of processes that an engine names as local:N; None if it is local alone.

    Raises:
        OptionError: N is no number of processes.
    """
    _, _, number = engine.partition(":")
    if number and not (number.isdecimal() and int(number)):
        raise OptionError(f"--engine local:N must name 1 process or more: got {engine!r}")
    return int(number) if number else None


class _Later:
    """Says that there will be another piece, but not yet."""


LATER: Final = _Later()

Piece = TypeVar("Piece", bound=Hashable)
Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class WorkerPool(Generic[Piece, Answer]):
    """Worker processes that do the same work to many pieces.

    Workers die with this process. Ctrl-C reaches this process alone, which then ends them.
    """

    work: Callable[[Iterator[Piece]], Iterator[tuple[Piece, Answer]]]
    """Takes pieces as it needs them, and yields each one with its answer, in any order. It is
    pickled: a function of a module, or a `partial` of one."""
    num_workers: int
    """Number of processes; with 0, or where the system starts none, this one does the work."""
    pieces_at_once: int = 1
    """Pieces that a worker has at a time."""
    lets_finish: bool = False
    """Whether workers finish what they have begun when the answers are not wanted any more; else
    they are killed."""
    descriptors: Sequence[int] = ()
    """Open files that workers inherit, under the same numbers."""
    retry: Callable[[list[Piece]], list[Piece | None]] = list[Piece | None]
    """Called with what a worker had when it died, even if that is nothing; returns for each piece
    what is to be done instead, None for nothing. By default the same again."""

    def answers(
        self, next_piece: Callable[[Piece | None], Piece | _Later | None]
    ) -> Generator[tuple[Piece, Answer]]:
        """Yield each piece with its answer, as they come.

        Args:
            next_piece: Called with the latest piece of a worker; returns its next one, None when
                all are handed out, or `LATER`.

        Raises:
            EngineError: A piece was lost with `RETRIES` + 1 workers.
        """
        workers = _Workers(self, next_piece) if self.num_workers else None
        if workers is None or not workers.start(self.num_workers):
            yield from self.work(_drawn(next_piece))
        else:
            yield from workers.answers()

    def in_order(self, pieces: Iterable[Piece]) -> Generator[Answer]:
        """Yield the answers in the order of the pieces, all of them different.

        No more pieces are under way, or answered and not yielded, than the workers have at once.

        Raises:
            EngineError: A piece was lost with `RETRIES` + 1 workers.
        """
        source = iter(pieces)
        pending: deque[Piece] = deque()
        answered: dict[Piece, Answer] = {}

        def next_piece(latest: Piece | None) -> Piece | _Later | None:
            if len(pending) >= max(1, self.num_workers * self.pieces_at_once):
                return LATER
            piece = next(source, None)
            if piece is not None:
                pending.append(piece)
            return piece

        with closing(self.answers(next_piece)) as answers:
            for piece, answer in answers:
                answered[piece] = answer
                while pending and pending[0] in answered:
                    yield answered.pop(pending.popleft())


def _drawn(next_piece: Callable[[Piece | None], Piece | _Later | None]) -> Iterator[Piece]:
    piece = None
    while (piece := next_piece(piece)) is not None:
        assert not isinstance(piece, _Later), "who takes one piece after the other need not wait"
        yield piece


@dataclass(kw_only=True, eq=False)
class _Worker(Generic[Piece]):
    process: WorkerProcess
    pieces: dict[Piece, int] = field(default_factory=dict[Piece, int])
    """What it has, and how many workers each piece was lost with."""
    latest: Piece | None = None
    knows_all: bool = False
    """Whether it was told that there are no more pieces."""


class _Workers(Generic[Piece, Answer]):
    """The workers of one call."""

    def __init__(
        self,
        pool: WorkerPool[Piece, Answer],
        next_piece: Callable[[Piece | None], Piece | _Later | None],
    ) -> None:
        self._pool = pool
        self._next_piece = next_piece
        self._workers: list[_Worker[Piece]] = []
        self._lost: deque[tuple[Piece, int]] = deque()
        """Pieces to do again, and how many workers each was lost with."""
        self._has_handed_out_all = False

    def start(self, count: int) -> bool:
        """Start some workers; return whether there are any."""
        environment = shared_environment(self._pool.num_workers, num_processors())
        started: list[_Worker[Piece]] = []
        try:
            for _ in range(count):
                process = WorkerProcess(environment=environment, descriptors=self._pool.descriptors)
                started.append(_Worker(process=process))
        except OSError as error:
            _LOG.warning("fewer worker processes than asked for: %s", error)
        for worker in started:
            worker.process.begin(self._pool.work)
        self._workers += started
        return bool(self._workers)

    def answers(self) -> Generator[tuple[Piece, Answer]]:
        """Yield each piece with its answer."""
        try:
            while self._workers:
                self._feed()
                ready = wait([worker.process.connection for worker in self._workers])
                for worker in [w for w in self._workers if w.process.connection in ready]:
                    message = worker.process.receive()
                    if message is None:
                        self._bury(worker)
                        continue
                    error, answer = message
                    if error is not None:
                        raise error
                    del worker.pieces[answer[0]]
                    yield answer
            if self._lost or not self._has_handed_out_all:
                raise EngineError("no worker is left, and the system starts no other process")
        finally:
            self._end()

    def _feed(self) -> None:
        """Hand out pieces in rounds, so that no worker has many more than another."""
        hungry = list(self._workers)
        while hungry:
            hungry = [worker for worker in hungry if self._hand_over(worker)]

    def _hand_over(self, worker: _Worker[Piece]) -> bool:
        """Send a worker another piece, if it takes one and there is one."""
        if worker.knows_all or len(worker.pieces) >= self._pool.pieces_at_once:
            return False
        piece, num_deaths = (
            self._lost.popleft() if self._lost else (self._next_piece(worker.latest), 0)
        )
        if isinstance(piece, _Later):
            return False
        worker.process.send(piece)
        if piece is None:
            worker.knows_all = self._has_handed_out_all = True
            return False
        worker.latest = piece
        worker.pieces[piece] = num_deaths
        return True

    def _bury(self, worker: _Worker[Piece]) -> None:
        """Take leave of a worker that has ended; what it had is lost, and to be done again."""
        self._workers.remove(worker)
        code = worker.process.wait()
        if code == 0 and not worker.pieces:
            return
        what = f"a worker process died with exit code {code}"
        num_deaths = [number + 1 for number in worker.pieces.values()]
        if max(num_deaths, default=0) > RETRIES:
            raise EngineError(
                f"each piece of work must be done by one of the {RETRIES + 1} workers that it is "
                f"given to: {what}, and so did {RETRIES} before it. If memory was short, use fewer "
                f"workers. It had {str(next(iter(worker.pieces)))[:300]}"
            )
        _LOG.warning("%s; %s of work to do again", what, counted(len(num_deaths), "piece"))
        pieces = self._pool.retry(list(worker.pieces))
        self._lost += [
            (piece, number)
            for piece, number in zip(pieces, num_deaths, strict=True)
            if piece is not None
        ]
        if self._lost or not worker.knows_all:
            self.start(1)

    def _end(self) -> None:
        for worker in self._workers:
            if self._pool.lets_finish:
                worker.process.send(None)
            else:
                worker.process.kill()
        for worker in self._workers:
            while self._pool.lets_finish and worker.process.receive() is not None:
                pass  # the answer to what it had begun
            worker.process.wait()


_LOG = logging.getLogger(__name__)
