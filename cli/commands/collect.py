"""`graphcredit collect`: play tasks and record what happens."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphcredit.cli.options import given, takes
from graphcredit.cli.output.console import interruptible, out, progress, talk
from graphcredit.collector.options import (
    CollectOptions,
    CollectorOptions,
    GameOptions,
    LanguageOptions,
    PlayOptions,
    RecordOptions,
)
from graphcredit.store.plural import counted

if TYPE_CHECKING:
    from graphcredit.collector.collection import CollectReport


_GAMES = GameOptions.model_fields.keys()

PANELS: Mapping[str, type[CollectorOptions]] = {
    "Games": GameOptions,
    "Recording": RecordOptions,
    "Play": PlayOptions,
    "Language models": LanguageOptions,
}


@takes(PANELS)
def collect(
    store: Annotated[Path, typer.Argument(help="The store; made where there is none.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    **flags: Any,
) -> None:
    """Play groups of trajectories and record them in a store.

    The same command again plays only what is missing, so it may be interrupted. Example:

        graphcredit collect STORE --env textworld --policy oracle:0.3 --tasks 16 --oracle
    """
    from graphcredit.collector import collection
    from graphcredit.collector.environments.registry import environment_kind

    values = given(flags)
    games = GameOptions(**{name: values.pop(name) for name in _GAMES & values.keys()})
    options = CollectOptions(**values)
    tasks = environment_kind(games.env).list_tasks(
        games.games, num_tasks=games.tasks, seed=options.seed, games_dir=options.games_dir
    )
    with interruptible("the same command again goes on"), progress("collect") as show:
        report = collection.collect(
            store,
            tasks,
            options,
            on_progress=show,
        )
    if as_json:
        sys.stdout.write(json.dumps(report.as_json(), indent=2) + "\n")
    else:
        show_report(report)
    if report.failures:
        raise typer.Exit(1)


def show_report(report: "CollectReport") -> None:
    """Print what was played, then everything that was out of the ordinary."""
    for line in (*report.notes, *report.failures):
        talk.print(line, markup=False, highlight=False, soft_wrap=True)
    if report.num_recovered_steps:
        recovered = counted(report.num_recovered_steps, "step")
        talk.print(f"{recovered} recovered from workers that died")
    out.print(
        f"{counted(report.num_trajectories, 'trajectory')} of {counted(report.num_tasks, 'task')} "
        f"played, {report.num_already_complete:,} were there already"
    )
    if report.failures:
        out.print(f"{counted(len(report.failures), 'task')} could not be played")
    if report.num_resampled:
        added = counted(report.num_resampled, "group")
        out.print(f"{added} added where all returns were equal")
    if report.num_trajectories:
        out.print(
            f"{report.num_success:,} succeeded, {report.num_lost:,} lost, "
            f"{report.num_truncated:,} truncated"
        )
        out.print(
            f"{counted(report.num_steps, 'step')} in {report.seconds:.1f} s, "
            f"{report.steps_per_second:,.0f} steps/s"
        )
