"""`graphcredit export`: write steps and credit as Parquet files, or into the log they are from."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from graphcredit.cli.options import Iteration, Run, StorePath
from graphcredit.cli.output.console import interruptible, progress, say, tell
from graphcredit.collector.exporters.tokens import MadeTokens, TokensReport, export_tokens
from graphcredit.collector.exporters.traces import TraceReport, export_traces
from graphcredit.collector.exporters.turns import TurnsReport, export_turns
from graphcredit.store.layout import Store, open_store
from graphcredit.store.parquet.export import ExportReport, export_store
from graphcredit.store.plural import counted
from graphcredit.store.progress import OnProgress
from graphcredit.store.provenance.freshness import credit_freshness, doubts

_SHOWN = 10
"""Bad lines and other files that are named."""


def export(
    store: StorePath,
    target: Annotated[
        Path,
        typer.Argument(
            help="A new or empty directory; a file that ends in .csv or .parquet; a file for "
            "tokens and turns, and for one file of traces.",
            show_default=False,
        ),
    ],
    to: Annotated[
        Literal["parquet", "tokens", "verifiers", "turns"],
        typer.Option(
            help="parquet: steps and credit. tokens: Parquet, sequences of token ids with mask, "
            "advantages and log-probabilities, for other trainers. verifiers: the traces of "
            "--source with `advantages`. turns: JSONL, a line of advantages a turn."
        ),
    ] = "parquet",
    source: Annotated[
        Path | None,
        typer.Option(help="The traces that were imported: a file or a folder.", show_default=False),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="With --to tokens, a model whose chat template tokenises messages: for logs "
            "without token ids.",
            show_default=False,
        ),
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

    Sequences for other trainers have `input_ids`, `loss_mask`, `advantages`, `logprobs`. Example:

        graphcredit export STORE sequences.parquet --to tokens --estimator reach

    Traces of verifiers and prime-rl get one advantage per sampled token; the exit code is 1 if a
    line could not be read. Example:

        graphcredit export STORE OUT --to verifiers --source outputs/traces.jsonl
    """
    if (source is not None) != (to == "verifiers"):
        raise typer.BadParameter("--source must be given with --to verifiers, and only with it")
    if model is not None and to != "tokens":
        raise typer.BadParameter("--model goes with --to tokens only")
    opened = open_store(store)
    chosen: dict[str, Any] = {"run_id": run, "iteration": iteration, "estimator": estimator}
    with interruptible("nothing was exported"), progress("export") as show:
        if to == "parquet":
            report = export_store(opened, target, **chosen, on_progress=show)
        elif to == "tokens":
            made = None if model is None else _made(opened, model, run, iteration, show)
            report = export_tokens(opened, target, made=made, **chosen, on_progress=show)
        elif source is None:
            report = export_turns(opened, target, **chosen, on_progress=show)
        else:
            report = export_traces(opened, source, target, **chosen, on_progress=show)
    _show(report)
    for doubt in doubts(credit_freshness(opened, run_id=run, iteration=iteration)):
        tell(f"notice: {doubt}")
    if isinstance(report, TraceReport) and report.bad_lines:
        raise typer.Exit(1)


def _made(
    store: Store, model: str, run: str | None, iteration: int | None, show: OnProgress
) -> MadeTokens:
    """Return the tokens that a model's chat template makes of the messages."""
    from graphcredit.trainer.data.token_source import logged_columns
    from graphcredit.trainer.messages.tokens import prompts_and_answers, tokens_of_messages
    from graphcredit.trainer.model.source import find_model

    shards = store.shards(run, iteration)
    if logged_columns(shard.path for shard in shards)[0]:
        raise typer.BadParameter("--model is for logs without token ids: leave it out here")
    made = tokens_of_messages(shards, find_model(model), on_progress=show)
    for notice in made.notices:
        tell(f"notice: {notice}")
    return lambda path: prompts_and_answers(made, path)


def _show_tokens(report: TokensReport) -> None:
    say(
        f"{counted(report.num_sequences, 'sequence')} of {counted(report.num_steps, 'step')} with "
        f"advantages of {report.estimator}: {counted(report.num_tokens, 'token')}, "
        f"{report.num_in_loss:,} in the loss"
    )
    for count, meaning in [
        (report.num_without_tokens, "steps without tokens: in no sequence"),
        (report.num_without_credit, "steps without credit: their mask is 0"),
        (report.num_without_logprobs, "sequences without log-probabilities: null"),
    ]:
        if count:
            say(f"{count:>12,}  {meaning}")


def _show(report: ExportReport | TokensReport | TurnsReport | TraceReport) -> None:
    match report:
        case ExportReport():
            say(
                f"{counted(report.num_steps, 'step')} in {counted(report.num_files, 'file')}; "
                f"{counted(report.num_without_credit, 'step')} without credit"
            )
        case TokensReport():
            _show_tokens(report)
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
