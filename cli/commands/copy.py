"""`graphcredit copy`: copy a store, or its news, to another machine or object storage."""

from dataclasses import asdict
from typing import Annotated

import typer

from graphcredit.cli.options import AsJson, Iteration, Run
from graphcredit.cli.output.console import interruptible, print_json, progress, say
from graphcredit.store.copying.copy_store import copy_store
from graphcredit.store.plural import counted

_WHY = {
    "spool": "steps that are in no shard yet: wait for the collection, or start it again",
    "quarantine": "refused files",
}


def copy(
    source: Annotated[str, typer.Argument(help="A store, by path or address.", show_default=False)],
    target: Annotated[
        str,
        typer.Argument(help="Its copy, by path or address; made if missing.", show_default=False),
    ],
    run: Run = None,
    iteration: Iteration = None,
    as_json: AsJson = False,
) -> None:
    """Copy a store, or what is new in it, from or to object storage.

    An address such as s3://bucket/store or gs://bucket/store names a place in object storage; one
    of both is a path of this machine. Files that are equal stay, nothing is removed, and the same
    command again goes on after an interruption. Example:

        graphcredit copy s3://bucket/store STORE --run r0 --iteration 7
    """
    remedy = "the same command copies the rest"
    with interruptible(remedy), progress("copy") as show:
        report = copy_store(source, target, run_id=run, iteration=iteration, on_progress=show)
    if as_json:
        print_json(asdict(report))
        return
    say(
        f"{counted(report.num_files, 'file')} copied ({report.num_bytes / 2**20:,.1f} MiB), "
        f"{report.num_equal:,} there already: {target}"
    )
    for folder, number in sorted(report.left.items()):
        say(f"{counted(number, 'file')} of {folder}/ not copied: {_WHY[folder]}")
    if report.links:
        say(f"{counted(len(report.links), 'link')} not copied, such as {report.links[0]}")
