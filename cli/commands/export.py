"""`graphcredit export`: write steps and credit as Parquet files, or into the log they are from."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from graphcredit.cli.options import Iteration, Run, StorePath
from graphcredit.cli.output.console import interruptible, progress, say, tell
from graphcredit.collector.exporters.traces import TraceReport, export_traces
from graphcredit.collector.exporters.turns import TurnsReport, export_turns
from graphcredit.store.layout import open_store
from graphcredit.store.parquet.export import ExportReport, export_store
from graphcredit.store.plural import counted
from graphcredit.store.provenance.freshness import credit_freshness, doubts

_SHOWN = 10
"""Bad lines and other files that are named."""


def export(
    store: StorePath,
    target: Annotated[
        Path,
        typer.Argument(
            help="A new or empty directory; a file that ends in .csv or .parquet; a file for "
            "turns, and for one file of traces.",
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
    run: Run = None,
    iteration: Iteration = None,
) -> None:
    """Write steps with their credit for other tools, or credit back into the log they are from.

    The result appears only when it is complete. By default each step shard and its credit become
    one Parquet file, all with the same columns, run and iteration among them; a target that ends in
    .csv or .parquet gets all steps, and lists in a CSV are JSON. Examples:

        graphcredit export STORE OUT --estimator reach

        graphcredit export STORE steps.csv

    Traces of verifiers and prime-rl get one advantage per sampled token; the exit code is 1 if a
    line could not be read. Example:

        graphcredit export STORE OUT --to verifiers --source outputs/traces.jsonl
    """
    if (source is not None) != (to == "verifiers"):
        raise typer.BadParameter("--source must be given with --to verifiers, and only with it")
    opened = open_store(store)
    chosen: dict[str, Any] = {"run_id": run, "iteration": iteration, "estimator": estimator}
    with interruptible("nothing was exported"), progress("export") as show:
        if to == "parquet":
            report = export_store(opened, target, **chosen, on_progress=show)
        elif source is None:
            report = export_turns(opened, target, **chosen, on_progress=show)
        else:
            report = export_traces(opened, source, target, **chosen, on_progress=show)
    _show(report)
    for doubt in doubts(credit_freshness(opened, run_id=run, iteration=iteration)):
        tell(f"notice: {doubt}")
    if isinstance(report, TraceReport) and report.bad_lines:
        raise typer.Exit(1)


def _show(report: ExportReport | TurnsReport | TraceReport) -> None:
    match report:
        case ExportReport():
            for path in report.removed:
                tell(f"removed {path}, which a killed export left behind")
            say(
                f"{counted(report.num_steps, 'step')} in {counted(report.num_files, 'file')}; "
                f"{counted(report.num_without_credit, 'step')} without credit"
            )
        case TurnsReport():
            trajectories = counted(report.num_trajectories, "trajectory")
            say(
                f"{counted(report.num_turns, 'turn')} of {trajectories} with advantages of "
                f"{', '.join(report.estimators)}; {report.num_without_credit:,} without credit"
            )
        case TraceReport():
            _show_traces(report)


def _show_traces(report: TraceReport) -> None:
    counts = report.counts
    say(
        f"advantages of {report.estimator} for {counted(counts.num_assigned, 'message')} "
        f"({counted(counts.num_tokens, 'token')}) of {counts.num_matched:,} of "
        f"{counted(counts.num_traces, 'trace')} in {counted(report.num_files, 'file')}"
    )
    lines = [
        *((n, f"sampled messages stay unassigned: {why}") for why, n in counts.unassigned.items()),
        *((n, f"traces without a match: {why}") for why, n in counts.unmatched.items()),
        (counts.num_replaced, "messages had advantages before: replaced, or removed"),
        (report.num_missing, "trajectories of the store that the source lacks"),
    ]
    for count, meaning in lines:
        if count:
            say(f"{count:>12,}  {meaning}")
    _name("without a match", counts.names, counts.unmatched.total())
    _name("not copied, no traces", [str(p) for p in report.other_files], len(report.other_files))
    _name("copied as it is", report.bad_lines, len(report.bad_lines))


def _name(kind: str, names: list[str], number: int) -> None:
    for name in names[:_SHOWN]:
        tell(f"{kind}: {name}")
    if number > _SHOWN:
        tell(f"and {number - _SHOWN:,} more like these")
