"""`graphcredit export`: write steps and credit as ordinary Parquet files."""

from pathlib import Path
from typing import Annotated

import typer

from graphcredit.cli.output.console import PLAIN, interruptible, out, progress, talk
from graphcredit.store.plural import counted


def export(
    store: Annotated[Path, typer.Argument(help="The store.", show_default=False)],
    target: Annotated[Path, typer.Argument(help="A new or empty directory.", show_default=False)],
    estimator: Annotated[
        str | None, typer.Option(help="Only this estimator's columns; by default all.")
    ] = None,
    run: Annotated[str | None, typer.Option(help="Only this run.")] = None,
    iteration: Annotated[int | None, typer.Option(help="Only this iteration.")] = None,
) -> None:
    """Write each step shard and its credit as one Parquet file, for other trainers.

    Every file has the same columns, run and iteration among them. The directory appears only when
    all files are written. The next export removes what a killed one left behind. Example:

        graphcredit export STORE OUT --estimator graphgpo
    """
    from graphcredit.cli.output.escape import plain_text
    from graphcredit.store.credit_marks.state import credit_states, doubts
    from graphcredit.store.layout import open_store
    from graphcredit.store.parquet.export import export_store

    opened = open_store(store)
    with interruptible("nothing was exported"), progress("export") as show:
        report = export_store(
            opened,
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
    for doubt in doubts(credit_states(opened, run_id=run, iteration=iteration)):
        talk.print(f"notice: {plain_text(doubt)}", **PLAIN)
