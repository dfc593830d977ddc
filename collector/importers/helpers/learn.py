"""Read a log for what must be known before it is read: by what it is judged, what is a state."""

from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import TypeAlias

from graphcredit.collector.importers.batches import TrajectoryBatch
from graphcredit.collector.importers.beside import with_verdicts
from graphcredit.collector.importers.helpers.read import (
    SMALL_BYTES,
    are_by_return,
    read_batches,
    with_rows,
    with_success_rule,
)
from graphcredit.collector.importers.report import Tally
from graphcredit.collector.importers.sources import LogSource
from graphcredit.collector.importers.trajectory import Partition
from graphcredit.collector.states.calls import Visit, visits_of
from graphcredit.collector.states.effects import learn_effects
from graphcredit.collector.states.restate import MOST_LEARNED
from graphcredit.collector.states.rows import COLUMNS, moves_of_rows
from graphcredit.collector.states.table import learned, must_learn

Batches: TypeAlias = Generator[TrajectoryBatch]


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
    log = with_success_rule(_with_files_beside(log))
    return log, _tally(log)


def begin_reading(log: LogSource, engine: str) -> tuple[LogSource, Tally, Batches]:
    """Return what `to_read` does, and the batches of the log.

    A small one is read whole, and again only if its rewards turn out to be no wins.
    """
    if log.num_bytes > SMALL_BYTES or log.options.success != "auto":
        log, tally = to_read(log)
        return log, tally, read_batches(log, tally, engine)
    log = _with_files_beside(log)
    tally = _tally(log)
    batches = list(read_batches(log, tally, engine))
    if not are_by_return(made for batch in batches for made in batch.entries):
        return log, tally, (batch for batch in batches)
    log = log.with_options(success="returns")
    tally = _tally(log)
    return log, tally, read_batches(log, tally, engine)


def _with_files_beside(log: LogSource) -> LogSource:
    return with_effects(with_rows(with_verdicts(log)))


def _tally(log: LogSource) -> Tally:
    tally = Tally(options=log.options, beside=log.beside)
    if any(file.rows_before is not None for file in log.files):
        tally.notes["verdicts by numbers of rows: the log has nothing else that they name"] = None
    return tally
