"""A preview of an import: the first trajectories of a log; nothing is written."""

from collections import defaultdict
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from graphcredit.collector.importers.batches import one_batch
from graphcredit.collector.importers.copies import COPY, Copies, LengthError
from graphcredit.collector.importers.helpers.learn import to_read
from graphcredit.collector.importers.helpers.read import refuse_unmatched_verdicts
from graphcredit.collector.importers.messages.rollout import Omission
from graphcredit.collector.importers.messages.values import RecordError
from graphcredit.collector.importers.notes import report_of
from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.reading import read_trajectories
from graphcredit.collector.importers.report import ImportReport
from graphcredit.collector.importers.sources import (
    LogSource,
    log_at,
    refuse_missing_columns,
    refuse_no_log,
    refuse_unknown_names,
)
from graphcredit.collector.importers.tally import Tally
from graphcredit.collector.importers.trajectory import ImportedTrajectory
from graphcredit.collector.recording.shards import complete_table
from graphcredit.store.errors import system_errors

_ANOTHER_LENGTH = Omission(reason="rollout read before with other steps: the longer is imported")

SAMPLED, SAMPLED_STEPS = 200, 4000
"""Trajectories, and steps, that are asked which states tell how they end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Preview:
    """What the first trajectories of a log would become."""

    report: ImportReport
    """The counts so far; nothing is in a store."""
    is_begin: bool
    """Whether the log may have more of them."""
    num_states: int
    """Different states, each counted in its group."""
    num_shared_states: int
    """States that several trajectories of their group were in."""
    num_lonely_steps: int
    """Steps from a state that no other trajectory of their group was in."""
    largest_groups: tuple[tuple[str, int], ...]
    """Tasks with the most trajectories, and how many."""
    task_id: str | None
    """The task of the sample step; None if there is no trajectory."""
    trajectory_id: str | None
    step: dict[str, Any]
    """Columns of the sample step, from the middle of the first trajectory."""
    sampled: list[pa.Table]
    """Steps of about the first `SAMPLED` trajectories or `SAMPLED_STEPS` steps, a table for each
    iteration: those that are asked which states tell how trajectories end."""
    is_whole: bool
    """Whether these are all."""


@system_errors()
def preview_log(source: Path | str, options: ImportOptions, number: int | None) -> Preview:
    """Return what the first `number` trajectories of a log would become; None takes all.

    Raises:
        OptionError: An option is not right.
        InputError: The source is no log of a known format.
    """
    log, tally = to_read(log_at(Path(source), options))
    visitors: dict[tuple[str, str], set[str]] = defaultdict(set)
    num_steps: dict[tuple[str, str], int] = defaultdict(int)
    trajectories = _trajectories(log, tally)
    first = list(islice(trajectories, number))
    tally.is_begin = len(first) == number
    refuse_unknown_names(log.options, first, tally)
    refuse_unmatched_verdicts(log, first)
    sample = first[0] if first else None
    for made in first:
        tally.add(made, is_new=True)
        group = f"{made.run_id}/{made.iteration}/{made.task_id}"
        for state in made.columns["state"]:
            visitors[group, state].add(made.trajectory_id)
            num_steps[group, state] += 1
    if sample is None:
        refuse_no_log(log, tally)
    refuse_missing_columns(log, tally)
    alone = [key for key, ids in visitors.items() if len(ids) == 1]
    sizes = [(task, size) for (_, _, task), size in tally.groups.most_common(3)]
    report = deepcopy(report_of(tally))  # what is read on is in the evidence alone
    step = sample.steps[sample.num_steps // 2] if sample is not None else {}
    sampled, is_whole = _sampled(chain(first, trajectories))
    return Preview(
        report=report,
        is_begin=tally.is_begin,
        num_states=len(visitors),
        num_shared_states=len(visitors) - len(alone),
        num_lonely_steps=sum(num_steps[key] for key in alone),
        largest_groups=tuple(sizes),
        task_id=sample.task_id if sample is not None else None,
        trajectory_id=sample.trajectory_id if sample is not None else None,
        step=step,
        sampled=sampled,
        is_whole=is_whole,
    )


def _sampled(trajectories: Iterator[ImportedTrajectory]) -> tuple[list[pa.Table], bool]:
    """Return the steps of the first trajectories, and whether that is all."""
    first: list[ImportedTrajectory] = []
    num_steps = 0
    for made in islice(trajectories, SAMPLED):
        first.append(made)
        num_steps += made.num_steps
        if num_steps >= SAMPLED_STEPS:
            break
    tables = [complete_table(table, "") for table in one_batch(first).tables.values()]
    return tables, next(trajectories, None) is None


def _trajectories(log: LogSource, tally: Tally) -> Iterator[ImportedTrajectory]:
    copies = Copies(drop_equal=log.options.drop_equal)
    for read in read_trajectories(log, tally):
        try:
            made = copies.named(read, partial(read.columns.get, "extra", ()))
        except LengthError:
            tally.leave_out(_ANOTHER_LENGTH)
            continue
        except RecordError as error:
            tally.refuse(read.origin.where, str(error))
            continue
        if made is None:
            tally.leave_out(COPY)
        else:
            yield made
