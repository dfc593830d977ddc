"""Logs become stores: files, and what is in memory, tables and lists of rows."""

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from graphcredit.collector.importers import run
from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.preview import preview_log
from graphcredit.collector.importers.report import ImportReport
from graphcredit.kinds import kind_of
from graphcredit.store.errors import InputError
from graphcredit.store.files.scratch import ScratchFolder
from graphcredit.store.keywords import takes_options
from graphcredit.store.layout import AnyStore, Store
from graphcredit.store.near_names import did_you_mean
from graphcredit.store.progress import OnProgress, silent

Log: TypeAlias = Any
"""A path of a file or a folder; a table of any kind that `compute` takes; or a list of records."""

COLUMNS = (
    *("task", "trajectory", "step", "state", "next_state", "observation", "thought", "action"),
    *("reward", "done", "terminated", "truncated", "success", "admissible_actions"),
)
"""What a column of steps may be."""

_FIRST = 20
"""Rollouts of a table that are tried before anything is written."""


@takes_options(ImportOptions, omit=("try_",))
def import_log(
    log: Log,
    store: AnyStore,
    *,
    columns: str | Mapping[str, str] = "",
    engine: str = "local",
    on_progress: OnProgress = silent,
    **options: Any,
) -> ImportReport:
    """Make a store of the log of another program.

    The same log again adds only what is new.

    Example:
        graphcredit.import_log("outputs/traces.jsonl", "store", state="facts")
        graphcredit.import_log(frame, "walks", columns={"task": "level", "action": "move"})

    Args:
        log: A file, or a folder of files; a table of any kind that `compute` takes; or a list of
            records.
        store: A store, or its path; made where there is none.
        columns: What the log calls the parts that a reader looks for, to the names of its fields.
        engine: Who reads it: local:N for N processes, or ray:ADDRESS. By default several
            processes if it is large.
        on_progress: Called with the share of the log that has been read.
        **options: Of `ImportOptions`.

    Returns:
        What was made, and what was refused or left out.

    Raises:
        OptionError: An option is not right.
        InputError: There is no log of a known format. A table must have rollouts, and must say how
            some of them ended: nothing is written otherwise.
        RecorderError: Another import writes to the store.
    """
    made = import_options(columns=columns, **options)
    with log_at(log, made) as path:
        if path is not log:
            _refuse_silent(Path(path), made)
        return _named(
            run.import_log(path, store, made, engine=engine, on_progress=on_progress), path
        )


def record(steps: Log, store: AnyStore, **named: Any) -> ImportReport:
    """Make a store of a table of steps: a row a step, or an episode with lists.

    Example:
        graphcredit.record(frame, "store", task="env", state="obs", action="move", decimals=1)

    Args:
        steps: A table, or a list of rows. States and actions may be texts, numbers or structs.
        store: A store, or its path; made where there is none.
        **named: What the table calls its task, trajectory, step, state, next_state, observation,
            thought, action, reward, done, terminated, truncated, success and admissible_actions.
            Usual names, such as obs, episode or t, need none. And other options of `import_log`.

    Returns:
        As `import_log`, which it is for steps. It raises the same, too.
    """
    columns = {name: named.pop(name) for name in COLUMNS if name in named}
    return import_log(steps, store, format="steps", columns=columns, **named)


def import_options(*, columns: str | Mapping[str, str] = "", **options: Any) -> ImportOptions:
    """Return options, whose columns may be a mapping."""
    if isinstance(columns, Mapping):
        columns = ",".join(f"{name}={field}" for name, field in columns.items())
    return ImportOptions(columns=columns, **options)


@contextmanager
def log_at(log: Log, options: ImportOptions) -> Generator[Any]:
    """Yield where a log is: what is in memory becomes a file, for as long as it is read.

    Raises:
        InputError: What is in memory is no table, is empty, or lacks a column that is named.
    """
    if isinstance(log, str | Path | Store):
        yield log
        return
    with ScratchFolder() as folder:
        path = Path(folder, "table.jsonl" if isinstance(log, list) else "table.arrow")
        names = _write(log, path)
        if not names:
            raise InputError("the table must have steps: it is empty")
        for field in options.names.values():
            if field.partition(".")[0] not in names and not field.startswith("path:"):
                raise InputError(
                    f"the table must have each column that is named: it lacks {field}, and has "
                    f"{', '.join(names)}.{did_you_mean(field, names)}"
                )
        try:
            yield path
        except InputError as error:
            raise type(error)(str(error).replace(str(path), "the table")) from error


def _write(log: Log, path: Path) -> list[str]:
    """Write a table, and return the names of its columns; none where it has no rows."""
    kind, table = kind_of(log)
    if kind.library == "pandas" and any(name is not None for name in table.index.names):
        table = table.reset_index()
    names = list(kind.names(table))
    if isinstance(log, list):
        try:
            text = "\n".join(json.dumps(row, default=_plain, ensure_ascii=False) for row in log)
        except (TypeError, ValueError) as error:
            raise InputError(f"records must have values that JSON has: {error}") from error
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        return names
    rows = kind.read(table, names)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, rows.schema) as writer:
        writer.write_table(rows)
    return names if rows.num_rows else []


def _plain(value: Any) -> Any:
    """Return a number, an array or a time of another library as JSON has it."""
    for name in ("tolist", "isoformat"):
        if hasattr(value, name):
            return getattr(value, name)()
    raise TypeError(f"found {type(value).__name__}")


def _refuse_silent(path: Path, options: ImportOptions) -> None:
    report = _named(preview_log(path, options, _FIRST).report, path)
    if report.num_unjudged == _FIRST:  # later ones may have a verdict
        report = _named(preview_log(path, options, None).report, path)
    if not report.num_trajectories + report.num_bad_rows:
        raise InputError("the table must have steps that can be recorded")
    if not report.num_trajectories:
        bad = report.bad_rows[0]
        raise InputError(
            f"the table must have steps that can be recorded: {bad.where}: {bad.reason}"
        )
    if report.num_unjudged == report.num_trajectories:
        (told,) = (note for note in report.notes if "without a verdict" in note)
        raise InputError(f"the table must say how its rollouts ended: {told}")


def _named(report: ImportReport, path: Path) -> ImportReport:
    """Return a report whose rows are those of the table."""
    told = [replace(bad, where=bad.where.removeprefix(f"{path}, ")) for bad in report.bad_rows]
    report.bad_rows = told
    return report
