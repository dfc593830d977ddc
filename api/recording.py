"""Record a table of steps in a store."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.report import ImportReport
from graphcredit.collector.importers.run import import_log
from graphcredit.kinds import kind_of
from graphcredit.store.errors import InputError, OptionError
from graphcredit.store.files.scratch import ScratchFolder
from graphcredit.store.layout import Store

COLUMNS = (
    *("task", "trajectory", "step", "state", "next_state", "observation", "thought", "action"),
    *("reward", "done", "terminated", "truncated", "success", "admissible_actions"),
)
"""What a column of steps may be."""


def record(
    steps: Any, store: Store | Path | str, *, options: ImportOptions | None = None, **columns: str
) -> ImportReport:
    """Record a table of steps in a store, as `graphcredit import` records a file of them.

    Example:
        graphcredit.record(frame, "store", task="env", state="obs", action="move")

    Args:
        steps: A pyarrow table, a Polars DataFrame or LazyFrame, a pandas DataFrame or a DuckDB
            relation with a row a step, or an episode with lists. States and actions may be texts,
            numbers, lists or structs.
        store: A store, or its path; made where there is none.
        options: What else to make of it: what counts as success, decimals of states, a run.
        **columns: What the table calls its task, trajectory, step, state, next_state, observation,
            thought, action, reward, done, terminated, truncated, success and admissible_actions.
            Usual names, such as obs, episode or t, need none.

    Returns:
        What was recorded; rows that were refused are in it. The same table again adds nothing.

    Raises:
        OptionError: An option is not right, or a column has no such meaning.
        InputError: `steps` is no table, lacks a column, or has no steps.
        SchemaError: A column has values of several types.
    """
    if unknown := sorted(columns.keys() - set(COLUMNS)):
        raise OptionError(f"record names {', '.join(COLUMNS)}: got {', '.join(unknown)}")
    options = options or ImportOptions()
    kind = kind_of(steps)
    if kind.library == "pandas" and any(name is not None for name in steps.index.names):
        steps = steps.reset_index()
    names = list(kind.names(steps))
    if missing := sorted(set(columns.values()) - set(names)):
        raise InputError(
            f"the table must have each column that is named: it lacks {', '.join(missing)}, and "
            f"has {', '.join(names)}"
        )
    pairs = [options.columns, *(f"{name}={column}" for name, column in columns.items())]
    options = options.changed(format="steps", columns=",".join(filter(None, pairs)))
    table = kind.read(steps, names)
    if not table.num_rows:
        raise InputError("the table must have steps: it is empty")
    with ScratchFolder() as folder:
        path = Path(folder, "table.arrow")
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
        report = import_log(path, store, options)
    report.bad_rows = [
        replace(bad, where=bad.where.removeprefix(f"{path}, ")) for bad in report.bad_rows
    ]
    if not report.num_trajectories + report.num_already_there + report.num_different:
        bad = "".join(f": {bad.where}: {bad.reason}" for bad in report.bad_rows[:1])
        raise InputError(f"the table must have steps that can be recorded{bad}")
    return report
