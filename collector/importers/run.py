"""Import a log: files to records, records to rollouts, rollouts to trajectories of the store."""

from collections import Counter, defaultdict
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from graphcredit.collector.importers.batches import TrajectoryBatch
from graphcredit.collector.importers.copies import COPY, Copies, LengthError
from graphcredit.collector.importers.helpers.learn import reading
from graphcredit.collector.importers.helpers.pieces import without_cycles
from graphcredit.collector.importers.helpers.read import engine_of, refuse_unmatched_verdicts
from graphcredit.collector.importers.messages.rollout import Omission
from graphcredit.collector.importers.messages.values import RecordError
from graphcredit.collector.importers.notes import report_of
from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.remembered import Remembered
from graphcredit.collector.importers.report import ImportReport
from graphcredit.collector.importers.sources import (
    log_at,
    refuse_missing_columns,
    refuse_no_log,
    refuse_unknown_names,
)
from graphcredit.collector.importers.tally import Tally
from graphcredit.collector.importers.trajectory import ImportedTrajectory, Partition
from graphcredit.collector.importers.writer import (
    WORKER,
    DiffersError,
    EarlierError,
    ImportWriter,
    writing,
)
from graphcredit.collector.recording.shards import complete_table
from graphcredit.store.errors import system_errors
from graphcredit.store.layout import Store, create_store
from graphcredit.store.progress import OnProgress, silent

_EARLIER = Omission(reason="earlier copy of a rollout of which the store has more")
_SHORTER = Omission(reason="beginning of a rollout, moved to quarantine/ for a longer copy")


@system_errors()
def import_log(
    source: Path | str,
    store: Store | Path | str,
    options: ImportOptions | None = None,
    *,
    engine: str = "local",
    on_progress: OnProgress = silent,
) -> ImportReport:
    """Record the trajectories of a foreign log in a store.

    The same log again adds nothing, and a log that has grown adds what is new. So after an
    interruption the same call goes on. Bad rows are reported, and the others imported.

    Args:
        source: A file, or a folder that is searched for logs.
        store: A store, or its path; made where there is none.
        options: What to make of the log.
        engine: Who reads it: local:N for N processes, local for as many as pay off, ray or
            ray:HOST:PORT for a cluster that sees the log under the same path. The store becomes
            the same with any.
        on_progress: Called with the share of the bytes that has been read.

    Raises:
        EngineError: Reading a part of the log ended four processes, or a cluster does not answer.
        MissingDependencyError: The engine is ray, and its extra is not installed.
        OptionError: An option is not right.
        InputError: The source is no log of a known format.
        PathError: There is no source.
        RecorderError: Another import writes to the store.
    """
    options = options or ImportOptions()
    log = log_at(Path(source), options)
    root = store.root if isinstance(store, Store) else Path(store)
    remembered = Remembered(log.source, root, options)
    if (known := remembered.report()) is not None:
        return known
    copies = Copies(drop_equal=log.options.drop_equal)
    total = max(log.num_bytes, 1)
    writer: ImportWriter | None = None
    with (
        without_cycles(),
        engine_of(engine) as workers,
        reading(log, workers) as (log, tally, batches),
        ExitStack() as stack,
    ):
        for batch in batches:
            on_progress("import", batch.num_bytes_read / total, 1)
            refuse_unknown_names(log.options, batch.entries, tally)
            if writer is None:
                refuse_unmatched_verdicts(log, batch.entries)
            if batch.entries and writer is None:
                opened = store if isinstance(store, Store) else create_store(store)
                writer = stack.enter_context(writing(opened))
            if writer is not None:
                _record(batch, copies, writer, tally)
    tally.num_equal = copies.num_equal
    refuse_no_log(log, tally)
    refuse_missing_columns(log, tally)
    report = report_of(tally)
    if writer is not None and _is_settled(report):
        remembered.keep(report)
    return report


def _is_settled(report: ImportReport) -> bool:
    """Return whether the same import would say the same: it has no images that may be lost."""
    is_longer = {_EARLIER.reason, _SHORTER.reason} & report.left_out.keys()
    return not (is_longer or report.num_different or report.num_images or report.num_bad_images)


def _record(batch: TrajectoryBatch, copies: Copies, writer: ImportWriter, tally: Tally) -> None:
    """Write the trajectories of a batch that are new, and tally all of them."""
    tables = {key: complete_table(table, WORKER) for key, table in batch.tables.items()}
    num_read: Counter[Partition] = Counter()
    chosen: defaultdict[Partition, list[range]] = defaultdict(list)
    renamed: defaultdict[Partition, list[tuple[range, str]]] = defaultdict(list)
    again: list[tuple[ImportedTrajectory, pa.Table, LengthError]] = []
    for entry in batch.entries:
        key, start = entry.partition, num_read[entry.partition]
        num_read[key] += entry.num_steps
        rows = range(start, num_read[key])
        steps = tables[key].slice(start, len(rows))
        try:
            made = copies.named(entry, steps.column("extra").to_pylist)
            if made is None:
                tally.leave_out(COPY)
                continue
            if made is not entry:
                renamed[key].append((rows, made.trajectory_id))
                steps = _renamed(steps, [(range(len(rows)), made.trajectory_id)])
            is_new = _is_new(made, steps, writer, tally)
        except LengthError as error:
            again.append((entry, steps, error))
            continue
        except RecordError as error:
            tally.refuse(entry.origin.where, str(error))
            continue
        except EarlierError:
            tally.leave_out(_EARLIER)
            continue
        except DiffersError as error:
            tally.differ(entry, error.columns, str(error))
            continue
        tally.add(made, is_new=is_new)
        if is_new:
            if chosen[key] and chosen[key][-1].stop == rows.start:  # neighbours become one
                rows = range(chosen[key].pop().start, rows.stop)
            chosen[key].append(rows)
    for key, ranges in chosen.items():
        table = _renamed(tables[key], renamed[key])
        for rows in ranges:
            writer.write(key, table.slice(rows.start, len(rows)))
    for entry, steps, error in again:
        _complete(entry, steps, error, writer, tally)


def _is_new(made: ImportedTrajectory, steps: pa.Table, writer: ImportWriter, tally: Tally) -> bool:
    """Return whether a trajectory is to be written; its images are, and its beginning goes."""
    is_new = writer.is_new(made.partition, made.trajectory_id, steps)
    if is_new:
        writer.keep(made.images)
        if writer.replaces(made.partition, made.trajectory_id):
            tally.leave_out(_SHORTER)
    return is_new


def _complete(
    made: ImportedTrajectory,
    steps: pa.Table,
    error: LengthError,
    writer: ImportWriter,
    tally: Tally,
) -> None:
    """Write a trajectory that goes on from an earlier one of the log, which is in the store."""
    writer.settle(made.partition, made.trajectory_id)
    try:
        is_new = _is_new(made, steps, writer, tally)
    except EarlierError:
        tally.leave_out(_EARLIER)
    except (DiffersError, RecordError):
        tally.refuse(made.origin.where, str(error))
    else:
        tally.add(made, is_new=is_new)
        if is_new:
            writer.write(made.partition, steps)


def _renamed(table: pa.Table, names: list[tuple[range, str]]) -> pa.Table:
    """Return a table with other ids in some rows."""
    if not names:
        return table
    column = table.column_names.index("trajectory_id")
    ids = table.column(column).to_pylist()
    for rows, trajectory_id in names:
        ids[rows.start : rows.stop] = [trajectory_id] * len(rows)
    return table.set_column(column, table.field(column), pa.array(ids, pa.string()))
