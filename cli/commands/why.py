"""`graphcredit why`: from a log, or a store, to what rollouts lost by, in one go."""

from contextlib import ExitStack
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Any

import click

from graphcredit.cli.options import AsJson, given, takes
from graphcredit.cli.output.console import interruptible, print_json, progress, say
from graphcredit.cli.parameters import Argument, Option
from graphcredit.collector.importers.options import ImportOptions
from graphcredit.store.files.atomic import atomic_path
from graphcredit.store.log_text import as_prose

_OF_ONE = 10
"""Most decisions of one rollout."""


@takes({"What to make of a log": ImportOptions}, omit=("try_",))
def why(
    source: Annotated[Path | None, Argument(help="A log, a folder of logs, or a store.")] = None,
    example: Annotated[
        bool, Option("--example", help="Ask the log of 160 chats that comes along.")
    ] = False,
    keep: Annotated[
        Path | None,
        Option(help="Keep the store that is made of a log; by default it is thrown away."),
    ] = None,
    trajectory: Annotated[str | None, Option(help="Only the decisions of this rollout.")] = None,
    most: Annotated[
        int | None, Option(min=1, help="Most single decisions; by default those beyond chance.")
    ] = None,
    picture: Annotated[
        Path | None, Option(help="An SVG file, to draw where losers left winners.")
    ] = None,
    markdown: Annotated[
        bool, Option("--markdown", help="Print Markdown, for a chat or a pull request.")
    ] = False,
    as_json: AsJson = False,
    **flags: Any,
) -> None:
    """Say what failures do that wins do not, which decisions mattered, what to distrust.

    A log is imported into a store and credited by the recommended estimator. In a store, only
    iterations without any credit get it.

    Example: graphcredit why outputs/chats.jsonl
    """
    from graphcredit.cli.output.why_lines import as_json as in_json
    from graphcredit.cli.output.why_lines import heading, lines, lines_of_one
    from graphcredit.credit.why.decisions import ranked_in
    from graphcredit.credit.why.report import why_in
    from graphcredit.loop.asked import asked
    from graphcredit.loop.distrust import with_distrust

    options = ImportOptions(**given(flags))
    if (source is None) != example:
        raise click.UsageError("name a log or a store, or give --example alone")
    with ExitStack() as kept:
        if source is None:
            log = files("graphcredit.cli").joinpath("orders.jsonl")
            source = kept.enter_context(as_file(log))
        with interruptible("the same command again goes on"), progress("why") as show:
            found = kept.enter_context(asked(source, options, keep=keep, on_progress=show))
            store, told = found.store, None
            if trajectory is None:
                told, doubted = with_distrust(
                    found, options.state, partial(why_in, most=most), on_progress=show
                )
                shown = told.ranked.decisions
                said = lines(told, doubted.states, markdown=markdown)
            else:
                of_one = partial(ranked_in, trajectory_id=trajectory, most=most or _OF_ONE)
                single, doubted = with_distrust(found, options.state, of_one, on_progress=show)
                shown = single.decisions
                said = lines_of_one(shown, markdown=markdown)
        if picture is not None:
            from graphcredit.credit.why.picture import why_picture

            with atomic_path(picture) as drawn:
                drawn.write_text(why_picture(store, report=told), encoding="utf-8")
        if as_json:
            print_json(
                in_json(told, shown, doubted.states)
                | {"numbers": doubted.numbers, "distrust": (*doubted.first, *doubted.doubts)}
            )
            return
        for line in doubted.first:
            say(f"{line[0].upper()}{line[1:]}.")
            say()
        for line in said:
            say(line)
        for line in heading("What to distrust", markdown=markdown):
            say(line)
        for line in doubted.doubts:
            say(f"- {as_prose(line) if markdown else line}")
        say()
        say(
            "--keep STORE keeps the store, for `graphcredit view STORE`"
            if not keep and found.imported is not None
            else f"`graphcredit view {'STORE' if markdown else store.root}` shows them in full"
        )
