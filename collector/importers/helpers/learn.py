"""Read a log for what must be known before it is read: by what it is judged, what is a state."""

from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain, islice

from graphcredit.collector.importers.batches import TrajectoryBatch
from graphcredit.collector.importers.beside import with_verdicts
from graphcredit.collector.importers.helpers.read import (
    FIRST,
    Engine,
    read_batches,
    with_rows,
    with_success_rule,
)
from graphcredit.collector.importers.rules.outcomes import RETURN
from graphcredit.collector.importers.sources import LogSource
from graphcredit.collector.importers.tally import Tally
from graphcredit.collector.importers.trajectory import Partition
from graphcredit.collector.states.calls import Visit, visits_of
from graphcredit.collector.states.effects import learn_effects
from graphcredit.collector.states.restate import MOST_LEARNED
from graphcredit.collector.states.rows import COLUMNS, moves_of_rows
from graphcredit.collector.states.table import learned, must_learn
from graphcredit.store.plural import counted

_KEPT_BYTES = 64 << 20
"""Bytes of the first rollouts up to which they are kept until it is known what judges all."""


def with_effects(log: LogSource) -> LogSource:
    """Return a log whose rule names the tools that change something; the log is read for them."""
    rule = log.options.state
    if not must_learn(rule):
        return log
    unnamed = log.with_options(state="last")
    groups: defaultdict[tuple[Partition, str], list[Sequence[Visit]]] = defaultdict(list)
    for partition, task_id, visits in islice(_trajectories(unnamed), MOST_LEARNED):
        groups[partition, task_id].append(visits)
    tools = learn_effects(groups.values()).tools
    return log.with_options(state=learned(rule, tools))


def _trajectories(log: LogSource) -> Iterator[tuple[Partition, str, Sequence[Visit]]]:
    with closing(read_batches(log, Tally(options=log.options))) as batches:
        for batch in batches:
            start: Counter[Partition] = Counter()
            for made in batch.entries:
                key = made.partition
                table = batch.tables[key].slice(start[key], made.num_steps)
                start[key] += made.num_steps
                present = [name for name in COLUMNS if name in table.column_names]
                rows = table.select(present).to_pylist()
                yield key, made.task_id, visits_of(moves_of_rows(rows))


def to_read(log: LogSource) -> tuple[LogSource, Tally]:
    """Return a log with all that must be known before it is read, and the tally of its reading."""
    log = with_success_rule(with_effects(with_rows(with_verdicts(log))))
    return log, _tally_of(log)


@contextmanager
def reading(
    log: LogSource, engine: Engine
) -> Generator[tuple[LogSource, Tally, Iterator[TrajectoryBatch]]]:
    """Yield what `to_read` returns, and the batches of the log, as `read_batches` does.

    The first rollouts are read once: again only if they say that no reward is a win, or if they are
    too long to be kept.
    """
    if log.options.success != "auto" or log.names:
        log, tally = to_read(log)
    else:
        log = with_effects(with_rows(with_verdicts(log)))
        tally = _tally_of(log)
        with closing(read_batches(log, tally, engine)) as batches:
            if (first := _first(batches)) is not None:
                kept = (first.pop(0) for _ in range(len(first)))
                yield log, tally, chain(kept, batches)
                return
        log = with_success_rule(log)
        tally = _tally_of(log)
    with closing(read_batches(log, tally, engine)) as batches:
        yield log, tally, batches


def _first(batches: Iterator[TrajectoryBatch]) -> list[TrajectoryBatch] | None:
    """Return batches up to the rollouts by which all are judged; None if these may be returns."""
    first: list[TrajectoryBatch] = []
    num_left, num_bytes = FIRST, 0
    while num_left > 0 and (batch := next(batches, None)) is not None:
        first.append(batch)
        num_bytes += sum(table.nbytes for table in batch.tables.values())
        if num_bytes > _KEPT_BYTES:
            return None
        if any(made.verdict.by == RETURN for made in batch.entries[:num_left]):
            return None
        num_left -= len(batch.entries)
    return first


def _tally_of(log: LogSource) -> Tally:
    tally = Tally(options=log.options, beside=log.beside)
    if log.without_log:
        tally.notes[
            f"{counted(len(log.without_log), 'file')} with verdicts in folders without a log, such "
            f"as {log.without_log[0]}: shares of wins leave out those rollouts"
        ] = None
    if any(file.rows_before is not None for file in log.files):
        tally.notes["verdicts by numbers of rows: the log has nothing else that they name"] = None
    return tally
