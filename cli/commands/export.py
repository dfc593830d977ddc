"""`graphcredit export`: write steps and credit for other tools."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from graphcredit.cli.options import Iteration, Run, StorePath
from graphcredit.cli.output.console import interruptible, progress, say, tell
from graphcredit.collector.exporters.tokens import MadeTokens, TokensReport, export_tokens
from graphcredit.collector.exporters.turns import TurnsReport, export_turns
from graphcredit.store.layout import Shard, open_store
from graphcredit.store.parquet.export import ExportReport, export_store
from graphcredit.store.plural import counted
from graphcredit.store.progress import OnProgress
from graphcredit.store.provenance.freshness import credit_freshness, doubts


def export(
    store: StorePath,
    target: Annotated[
        Path,
        typer.Argument(
            help="A new or empty directory; a file that ends in .csv or .parquet; a file for "
            "tokens and turns.",
            show_default=False,
        ),
    ],
    to: Annotated[
        Literal["parquet", "tokens", "turns"],
        typer.Option(
            help="parquet: steps and credit. tokens: Parquet, sequences of token ids with mask, "
            "advantages and log-probabilities, for other trainers. turns: JSONL, a line of "
            "advantages a turn, with the ids of the log."
        ),
    ] = "parquet",
    model: Annotated[
        str | None,
        typer.Option(
            help="With --to tokens, a model whose chat template tokenises messages: for logs "
            "without token ids.",
            show_default=False,
        ),
    ] = None,
    chat_template: Annotated[
        Path | None,
        typer.Option(
            help="With --model, a file with a chat template in place of the model's.",
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
    """Write steps with their credit for other tools, or credit beside the ids of the log.

    The result appears only when it is complete. By default each step shard and its credit become
    one Parquet file, all with the same columns, run and iteration among them; a target that ends in
    .csv or .parquet gets all steps, and lists in a CSV are JSON. Examples:

        graphcredit export STORE OUT --estimator reach

        graphcredit export STORE steps.csv

    Sequences for other trainers have `input_ids`, `loss_mask`, `advantages`, `logprobs`. Example:

        graphcredit export STORE sequences.parquet --to tokens --estimator reach
    """
    if model is not None and to != "tokens":
        raise typer.BadParameter("--model goes with --to tokens only")
    if chat_template is not None and model is None:
        raise typer.BadParameter("--chat-template goes with --model only")
    opened = open_store(store)
    chosen: dict[str, Any] = {"run_id": run, "iteration": iteration, "estimator": estimator}
    with interruptible("nothing was exported"), progress("export") as show:
        if to == "parquet":
            report = export_store(opened, target, **chosen, on_progress=show)
        elif to == "tokens":
            shards = opened.shards(run, iteration)
            made = None if model is None else _made(shards, model, chat_template, show)
            report = export_tokens(opened, target, made=made, **chosen, on_progress=show)
        else:
            report = export_turns(opened, target, **chosen, on_progress=show)
    _show(report)
    for doubt in doubts(credit_freshness(opened, run_id=run, iteration=iteration)):
        tell(f"notice: {doubt}")


def _made(
    shards: Sequence[Shard], model: str, template: Path | None, show: OnProgress
) -> MadeTokens:
    """Return the tokens that a model's chat template makes of the messages."""
    from graphcredit.trainer.data.token_source import logged_columns
    from graphcredit.trainer.messages.tokens import prompts_and_answers, tokens_of_messages
    from graphcredit.trainer.model.source import find_model

    if logged_columns(shard.path for shard in shards)[0]:
        raise typer.BadParameter("--model is for logs without token ids: leave it out here")
    made = tokens_of_messages(shards, find_model(model), template=template, on_progress=show)
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


def _show(report: ExportReport | TokensReport | TurnsReport) -> None:
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
