"""`graphcredit export`: steps and credit as ordinary Parquet files."""

from pathlib import Path
from typing import Annotated

import typer

from graphcredit.cli.console import PLAIN, interruptible, out, progress_bar


def export(
    store: Annotated[Path, typer.Argument(help="The store.", show_default=False)],
    target: Annotated[Path, typer.Argument(help="A new directory.", show_default=False)],
    estimator: Annotated[
        str | None, typer.Option(help="Only this estimator's columns; all if not given.")
    ] = None,
    run: Annotated[str | None, typer.Option(help="Only this run.")] = None,
    iteration: Annotated[int | None, typer.Option(help="Only this iteration.")] = None,
) -> None:
    """Write each step shard and its credit as one Parquet file, for other trainers.

    Every file has the same columns; run and iteration are among them. Example:

        graphcredit export STORE OUT --estimator graphgpo
    """
    from graphcredit.store.export import export_store
    from graphcredit.store.layout import open_store

    opened = open_store(store)
    with interruptible("the files that were written are whole"), progress_bar() as bar:
        task = bar.add_task("export", total=None)
        report = export_store(
            opened,
            target,
            run_id=run,
            iteration=iteration,
            estimator=estimator,
            on_progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    out.print(
        f"{report.num_steps:,} steps in {report.num_files:,} files, "
        f"{report.num_without_credit:,} of them without credit",
        **PLAIN,
    )
