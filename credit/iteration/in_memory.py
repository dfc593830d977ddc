"""Credit for a table in memory, without a store: for training loops with their steps at hand."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphcredit.credit.estimators.table import EstimatorChoice, chosen
from graphcredit.credit.inputs.material import InputProvider, Opening
from graphcredit.credit.inputs.table import open_inputs
from graphcredit.credit.iteration.columns import scatter, to_arrow
from graphcredit.credit.iteration.credit_steps import credit_steps
from graphcredit.credit.iteration.report import CreditReport, incomplete_notice, notices_of
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.merger import open_merger
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.steps.arrays import starts_of_runs
from graphcredit.credit.steps.codes import encode
from graphcredit.store.errors import CreditWarning, InputError, OptionError
from graphcredit.store.near_names import must_be_one_of
from graphcredit.store.parquet.er_graph import ErGraph
from graphcredit.store.parquet.numbers import arrow_of, numpy_of, repeat_text
from graphcredit.store.parquet.shards import conform, step_columns
from graphcredit.store.schema import CREDIT_KEY_COLUMNS, PARTITION_COLUMNS

OnIncomplete: TypeAlias = Literal["warn", "raise", "ignore"]

_COUNTS = re.compile(r"\d[\d,.]*%?( of \d[\d,]* \w+ \w+)?")
"""What of a notice differs from call to call."""

said: set[str] = set()
"""Notices that this process has given, without counts: a trainer calls at every step."""


def compute(
    table: Any,
    *,
    estimators: EstimatorChoice,
    merge: MergeSettings | None = None,
    invalid_action_penalty: float = 0.0,
    er_graph: ErGraph | None = None,
    on_incomplete: OnIncomplete = "warn",
) -> pa.Table:
    """Return the credit of every row of a table of steps.

    Example:
        credit = compute(steps, estimators=["gigpo", "graphgpo"])
        advantage = credit["graphgpo_advantage"].to_numpy()

    Args:
        table: A pyarrow table, a Polars frame, or anything with the Arrow stream interface; the
            columns of `steps`, rows in any order. `run_id` and `iteration` may be missing: then
            all rows are of one iteration.
        estimators: Names, with commas if they are one text; objects of their options, such as
            `GraphGpo(distance_discount=0.2)`; or what `table.configure` returns.
        merge: Which texts are one state; each distinct text is one by default.
        invalid_action_penalty: Taken off the reward of every invalid step first.
        er_graph: The entities of the tasks, for estimators that need them.
        on_incomplete: Where trajectories are not complete: "warn" says how many rows have no credit
            and why, "raise" makes that an error, "ignore" says nothing.

    Returns:
        A row for each row of `table`, in its order: the columns of `credit` and of the estimators;
        null where a trajectory is not complete.

    Warns:
        CreditWarning: Rows have no credit; or, once in a process, an estimator lacks what it needs
            in some groups.

    Raises:
        SchemaError: A column is missing, or has values that do not fit its type.
        OptionError: An estimator or an option is not right.
        InputError: An estimator needs an `er_graph` that is not given; or trajectories are not
            complete, with `on_incomplete="raise"`.
    """
    settings = CreditSettings(
        estimators=chosen(estimators),
        merge=merge or MergeSettings(),
        invalid_action_penalty=invalid_action_penalty,
    )
    if on_incomplete not in get_args(OnIncomplete):
        raise OptionError(must_be_one_of("on_incomplete", get_args(OnIncomplete), on_incomplete))
    # `pa.table` would import pandas to ask whether the table is one of its frames.
    steps = _steps(table if isinstance(table, pa.Table) else pa.table(table), settings)
    report = CreditReport()
    credited = list(_credited(steps, settings, er_graph, report))
    _say(report, settings, on_incomplete)
    return _in_order(steps, credited)


def _credited(
    steps: pa.Table, settings: CreditSettings, er_graph: ErGraph | None, report: CreditReport
) -> Iterator[tuple[NDArray[np.int64], dict[str, NDArray[np.generic]]]]:
    """Yield the rows of each iteration and their columns; what is found goes into the report."""
    merger = open_merger(settings.merge)
    opening = Opening(options=settings.estimators, given={"mentions": er_graph})
    providers: dict[str, dict[str, InputProvider]] = {}
    for run, rows in _iterations(steps):
        iteration = steps if len(rows) == steps.num_rows else steps.take(arrow_of(rows))
        if run not in providers:
            providers[run] = open_inputs(settings.inputs, opening)
        fitted = merger.learn([iteration])
        credited = credit_steps(
            iteration,
            settings,
            merger=fitted,
            provided={name: each.enter(None) for name, each in providers[run].items()},
        )
        report.add(credited.report)
        report.add(CreditReport(state_rules=fitted.rules_met))
        columns = credited.columns.items()
        yield rows, {name: scatter(credited.assembly, values) for name, values in columns}


def _say(report: CreditReport, settings: CreditSettings, on_incomplete: OnIncomplete) -> None:
    """Warn of everything that a caller would not see in the columns, or raise InputError."""
    incomplete = incomplete_notice(report)
    if incomplete and on_incomplete == "raise":
        raise InputError(incomplete)
    if incomplete and on_incomplete == "warn":
        more = 'on_incomplete="raise" makes this an error, "ignore" accepts it'
        warnings.warn(f"{incomplete}\n{more}", CreditWarning, stacklevel=_callers_level())
    for notice in notices_of(report, settings):
        cause = _COUNTS.sub("", notice)
        if cause not in said:
            said.add(cause)
            warnings.warn(notice, CreditWarning, stacklevel=_callers_level())


def _callers_level() -> int:
    """Return the `stacklevel` at which a warning of `_say` names the first caller outside of us."""
    frame, level = sys._getframe(1), 1  # pyright: ignore[reportPrivateUsage]
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "graphcredit":
        frame, level = frame.f_back, level + 1
    return level


def _steps(table: pa.Table, settings: CreditSettings) -> pa.Table:
    """Return the columns that are needed, checked and cast, and where each step belongs."""
    steps = conform(table, step_columns(settings.columns), where="the table")
    missing = {
        "run_id": repeat_text("", table.num_rows),
        "iteration": arrow_of(np.zeros(table.num_rows, np.int32)),
    }
    for column in PARTITION_COLUMNS:
        if column.name in table.column_names:
            values = table[column.name].cast(column.type)
        else:
            values = missing[column.name]
        steps = steps.append_column(column.name, values)
    return steps


def _iterations(steps: pa.Table) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Yield the run and the rows of each iteration, those of a run in ascending order."""
    run, iteration = encode(steps["run_id"]).rank(), numpy_of(steps["iteration"])
    key = run * (int(iteration.max(initial=0)) + 1) + iteration
    order = np.argsort(key, kind="stable")
    for start, stop in pairwise(starts_of_runs(key[order]).tolist()):
        yield steps["run_id"][order[start]].as_py(), order[start:stop]


def _in_order(
    steps: pa.Table,
    iterations: Sequence[tuple[NDArray[np.int64], Mapping[str, NDArray[np.generic]]]],
) -> pa.Table:
    """Return the credit of all iterations in the order of the rows, beside the two keys."""
    keys = {column.name: steps[column.name] for column in CREDIT_KEY_COLUMNS}
    if not iterations:
        return pa.table(keys)
    order = np.argsort(np.concatenate([rows for rows, _ in iterations]))
    columns = {
        name: to_arrow(name, np.concatenate([columns[name] for _, columns in iterations])[order])
        for name in iterations[0][1]
    }
    return pa.table(keys | columns)
