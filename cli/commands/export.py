"""`graphcredit export`: write steps and credit as Parquet files, or into the log they are from."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from graphcredit.cli.output.console import PLAIN, interruptible, out, progress, talk
from graphcredit.cli.output.escape import plain_text
from graphcredit.store.plural import counted

if TYPE_CHECKING:
    from graphcredit.collector.exporters.trace_report import TraceReport
    from graphcredit.store import Store

_SHOWN = 10
"""Bad lines and other files that are named."""


def export(
    store: Annotated[Path, typer.Argument(help="The store.", show_default=False)],
    target: Annotated[
        Path,
        typer.Argument(
            help="A new or empty directory; a file for turns, and for one file of traces.",
            show_default=False,
        ),
    ],
    to: Annotated[
        Literal["parquet", "verifiers", "turns"],
        typer.Option(
            help="parquet: steps and credit, for other trainers. verifiers: the traces of "
            "--source with `advantages`. turns: JSONL, a line of advantages a turn."
        ),
    ] = "parquet",
    source: Annotated[
        Path | None,
        typer.Option(help="The traces that were imported: a file or a folder.", show_default=False),
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option("--estimator", "-e", help="Only this estimator's columns; by default all."),
    ] = None,
    run: Annotated[str | None, typer.Option(help="Only this run.")] = None,
    iteration: Annotated[int | None, typer.Option(help="Only this iteration.")] = None,
) -> None:
    """Write steps with their credit for other tools, or credit back into the log they are from.

    The result appears only when it is complete. By default each step shard and its credit become
    one Parquet file, all with the same columns, run and iteration among them. Example:

        graphcredit export STORE OUT --estimator graphgpo

    Traces of verifiers and prime-rl get one advantage per sampled token; the exit code is 1 if a
    line could not be read. Example:

        graphcredit export STORE OUT --to verifiers --source outputs/traces.jsonl
    """
    from graphcredit.store.layout import open_store
    from graphcredit.store.provenance.freshness import credit_freshness, doubts

    if (source is not None) != (to == "verifiers"):
        raise typer.BadParameter("--source must be given with --to verifiers, and only with it")
    opened = open_store(store)
    num_bad = 0
    if to == "parquet":
        _to_parquet(opened, target, run, iteration, estimator)
    elif source is None:
        _to_turns(opened, target, run, iteration, estimator)
    else:
        num_bad = _to_traces(opened, source, target, run, iteration, estimator)
    for doubt in doubts(credit_freshness(opened, run_id=run, iteration=iteration)):
        talk.print(f"notice: {plain_text(doubt)}", **PLAIN)
    if num_bad:
        raise typer.Exit(1)


def _to_parquet(
    store: "Store", target: Path, run: str | None, iteration: int | None, estimator: str | None
) -> None:
    from graphcredit.store.parquet.export import export_store

    with interruptible("nothing was exported"), progress("export") as show:
        report = export_store(
            store,
            target,
            run_id=run,
            iteration=iteration,
            estimator=estimator,
            on_progress=show,
        )
    for path in report.removed:
        talk.print(f"removed {path}, which a killed export left behind", **PLAIN)
    out.print(
        f"{counted(report.num_steps, 'step')} in {counted(report.num_files, 'file')}; "
        f"{counted(report.num_without_credit, 'step')} without credit",
        **PLAIN,
    )


def _to_turns(
    store: "Store", target: Path, run: str | None, iteration: int | None, estimator: str | None
) -> None:
    from graphcredit.collector.exporters.turns import export_turns

    with interruptible("nothing was exported"), progress("export") as show:
        report = export_turns(
            store,
            target,
            run_id=run,
            iteration=iteration,
            estimator=estimator,
            on_progress=show,
        )
    out.print(
        f"{counted(report.num_turns, 'turn')} of {counted(report.num_trajectories, 'trajectory')} "
        f"with advantages of {', '.join(report.estimators)}; "
        f"{report.num_without_credit:,} without credit",
        **PLAIN,
    )


def _to_traces(
    store: "Store",
    source: Path,
    target: Path,
    run: str | None,
    iteration: int | None,
    estimator: str | None,
) -> int:
    """Write traces with advantages; return how many lines could not be read."""
    from graphcredit.collector.exporters.traces import export_traces

    with interruptible("nothing was exported"), progress("export") as show:
        report = export_traces(
            store,
            source,
            target,
            run_id=run,
            iteration=iteration,
            estimator=estimator,
            on_progress=show,
        )
    _show_traces(report)
    return len(report.bad_lines)


def _show_traces(report: "TraceReport") -> None:
    counts = report.counts
    out.print(
        f"advantages of {report.estimator} for {counted(counts.num_assigned, 'message')} "
        f"({counted(counts.num_tokens, 'token')}) of {counts.num_matched:,} of "
        f"{counted(counts.num_traces, 'trace')} in {counted(report.num_files, 'file')}",
        **PLAIN,
    )
    lines = [
        *((n, f"sampled messages stay unassigned: {why}") for why, n in counts.unassigned.items()),
        *((n, f"traces without a match: {why}") for why, n in counts.unmatched.items()),
        (counts.num_replaced, "messages had advantages before: replaced, or removed"),
        (report.num_missing, "trajectories of the store that the source lacks"),
    ]
    for count, meaning in lines:
        if count:
            out.print(f"{count:>12,}  {meaning}", **PLAIN)
    _name("without a match", counts.names, counts.unmatched.total())
    _name("not copied, no traces", [str(p) for p in report.other_files], len(report.other_files))
    _name("copied as it is", report.bad_lines, len(report.bad_lines))


def _name(what: str, names: list[str], number: int) -> None:
    for name in names[:_SHOWN]:
        talk.print(f"{what}: {plain_text(name)}", **PLAIN)
    if number > _SHOWN:
        talk.print(f"and {number - _SHOWN:,} more like these", **PLAIN)
