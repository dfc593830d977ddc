"""`graphcredit export`: write steps and credit for other tools."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, cast

from graphcredit.cli.options import AsJson, Iteration, Run, StorePath
from graphcredit.cli.output.console import interruptible, print_json, progress, say, tell
from graphcredit.cli.parameters import Argument, Option
from graphcredit.collector.exporters.tokens import TokensReport
from graphcredit.loop.exporting import ExportKind
from graphcredit.loop.exporting import export as export_store
from graphcredit.store.layout import open_store
from graphcredit.store.provenance.freshness import credit_freshness, doubts


def export(
    store: StorePath,
    target: Annotated[
        Path,
        Argument(
            help="A new or empty directory, or a file that ends in .csv or .parquet; for tokens a "
            ".parquet, for turns a .jsonl."
        ),
    ],
    to: Annotated[
        str,
        Option(
            help="parquet: steps and credit. tokens: Parquet, sequences of token ids with mask, "
            "advantages and log-probabilities, for other trainers. turns: JSONL, a line of "
            "advantages a turn, with the ids of the log."
        ),
    ] = "parquet",
    model: Annotated[
        str | None,
        Option(
            help="With --to tokens, a model whose chat template tokenises messages: for logs "
            "without token ids."
        ),
    ] = None,
    chat_template: Annotated[
        Path | None,
        Option(help="With --model, a file with a chat template in place of the model's."),
    ] = None,
    estimator: Annotated[
        str | None, Option("--estimator, -e", help="Only this estimator's columns; by default all.")
    ] = None,
    run: Run = None,
    iteration: Iteration = None,
    as_json: AsJson = False,
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
    opened = open_store(store)
    with interruptible("nothing was exported"), progress("export") as show:
        report = export_store(
            opened,
            target,
            to=cast("ExportKind", to),
            model=model,
            chat_template=chat_template,
            estimator=estimator,
            run=run,
            iteration=iteration,
            on_progress=show,
            on_notice=lambda notice: tell(f"notice: {notice}"),
        )
    if as_json:
        print_json(asdict(report))
    else:
        say(report.headline())
        if isinstance(report, TokensReport):
            _show_left_out(report)
    for doubt in doubts(credit_freshness(opened, run_id=run, iteration=iteration)):
        tell(f"notice: {doubt}")


def _show_left_out(report: TokensReport) -> None:
    for count, meaning in [
        (report.num_without_tokens, "steps without tokens: in no sequence"),
        (report.num_without_credit, "steps without credit: their mask is 0"),
        (report.num_without_logprobs, "sequences without log-probabilities: null"),
    ]:
        if count:
            say(f"{count:>12,}  {meaning}")
