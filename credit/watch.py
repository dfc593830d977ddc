"""Stay and credit what appears: iterations whose credit is missing or old, once they are at rest.

Shards of an iteration may arrive one by one, and each makes the credit of all its groups old. So an
iteration waits until its step shards have not changed for a while, and at least for as long as its
last credit took: then crediting takes at most half of the time, however often shards arrive. Where
credit depends on earlier iterations of the run, it waits for these to be at rest, too.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from graphcredit.credit.iteration.engines.local import LOCAL, BatchEngine
from graphcredit.credit.iteration.report import CreditReport
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store.errors import InputError, NothingToCreditError, OptionError
from graphcredit.store.layout import Shard, Store
from graphcredit.store.provenance.sources import SOURCES

_Stamp: TypeAlias = tuple[tuple[str, int, int, int], ...]
"""Path, inode, size and modification time of each file that exists."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Watched:
    """What became of one iteration."""

    run_id: str
    iteration: int
    report: CreditReport | None
    """What was credited; None if it failed."""
    error: str | None
    """Why it failed; it is tried again when its files change."""
    seconds: float
    """How long it took."""


@dataclass(kw_only=True, slots=True)
class _Seen:
    """What a watch remembers of an iteration."""

    steps: _Stamp
    since: float
    """When its step shards were first seen as they are."""
    seconds: float = 0.0
    """How long its last credit took."""
    settled: int | None = None
    """The mark of its files when it was last credited, or found to be current, or failed."""


class CreditWatch:
    """Credits what appears in a store, at each call of `look`."""

    def __init__(
        self,
        store: Store,
        settings: CreditSettings,
        *,
        run_id: str | None = None,
        iteration: int | None = None,
        rest: float = 5.0,
        engine: BatchEngine = LOCAL,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin to watch.

        Args:
            store: The store.
            settings: What to compute.
            run_id: Only this run.
            iteration: Only this iteration.
            rest: Seconds for which the step shards of an iteration must not have changed.
            engine: Computes the batches.
            clock: Returns the time in seconds.
        """
        self._store = store
        self._settings = settings
        self._run_id, self._iteration = run_id, iteration
        self._rest = rest
        self._engine = engine
        self._clock = clock
        self._seen: dict[tuple[str, int], _Seen] = {}

    def look(self) -> Iterator[Watched]:
        """Credit the iterations at rest whose credit is missing or old; yield each one.

        Bad data ends no watch: it is yielded as an error.

        Raises:
            OptionError: An option is out of its range.
            GraphcreditError: Something failed that is not about the data of one iteration: the
                disk, the engine, or a missing extra.
        """
        sources = hash(_stamp(path for row in SOURCES for path in row.files(self._store)))
        shards = self._store.shards(self._run_id)
        for run_id, of_run in groupby(shards, lambda shard: shard.run_id):
            mark, changed = sources, -math.inf
            for iteration, members in groupby(of_run, lambda shard: shard.iteration):
                listed = list(members)
                seen = self._update((run_id, iteration), listed)
                changed = max(changed, seen.since) if self._settings.reads_earlier else seen.since
                is_wanted = self._iteration in (None, iteration)
                if is_wanted and self._clock() - changed >= max(self._rest, seen.seconds):
                    yield from self._settle(seen, run_id, iteration, listed, mark)
                if self._settings.reads_earlier:
                    mark = _mark(mark, listed)

    def _update(self, key: tuple[str, int], shards: Sequence[Shard]) -> _Seen:
        steps = _stamp(shard.path for shard in shards)
        now = self._clock()
        seen = self._seen.setdefault(key, _Seen(steps=steps, since=now))
        if seen.steps != steps:
            seen.steps, seen.since, seen.settled = steps, now, None
        return seen

    def _settle(
        self, seen: _Seen, run_id: str, iteration: int, shards: Sequence[Shard], mark: int
    ) -> Iterator[Watched]:
        if seen.settled == _mark(mark, shards):
            return
        watched = self._credit(run_id, iteration)
        seen.settled = _mark(mark, shards)
        if watched is not None:
            seen.seconds = watched.seconds
            yield watched

    def _credit(self, run_id: str, iteration: int) -> Watched | None:
        """Credit an iteration; None if its credit is current."""
        started = time.perf_counter()
        report, error = None, None
        try:
            reports = assign_credit(
                self._store,
                self._settings,
                run_id=run_id,
                iteration=iteration,
                only_new=True,
                engine=self._engine,
            )
            if not reports:
                return None
            report = reports[run_id, iteration]
        except OptionError:
            raise
        except (InputError, NothingToCreditError) as failure:
            error = str(failure)
        return Watched(
            run_id=run_id,
            iteration=iteration,
            report=report,
            error=error,
            seconds=time.perf_counter() - started,
        )


def is_awaited(root: Path) -> bool:
    """Return whether a store may still appear at a path: nothing is there, or one is being made."""
    if not root.exists():
        return True
    if not root.is_dir() or (root / "store.json").exists():
        return False
    return all(path.name.startswith("store.json.") for path in root.iterdir())


def _mark(before: int, shards: Sequence[Shard]) -> int:
    """Return a mark of the files of an iteration and of all that it may depend on."""
    paths = (path for shard in shards for path in (shard.path, shard.credit_path))
    return hash((before, _stamp(paths)))


def _stamp(paths: Iterable[Path]) -> _Stamp:
    return tuple(stat for path in paths if (stat := _stat(path)))


def _stat(path: Path) -> tuple[str, int, int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return str(path), status.st_ino, status.st_size, status.st_mtime_ns
