"""`graphcredit collect`: play tasks and record what happens."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from graphcredit.cli.options import AsJson, given, takes
from graphcredit.cli.output.console import interruptible, print_json, progress, say, tell
from graphcredit.cli.parameters import Argument
from graphcredit.collector.collection import CollectReport
from graphcredit.collector.collection import collect as collect_tasks
from graphcredit.collector.environments.registry import environment_kind
from graphcredit.collector.options import (
    CollectOptions,
    CollectorOptions,
    GameOptions,
    LanguageOptions,
    PlayOptions,
    RecordOptions,
)
from graphcredit.store.plural import counted

_GAMES = GameOptions.model_fields.keys()

PANELS: Mapping[str, type[CollectorOptions]] = {
    "Games": GameOptions,
    "Recording": RecordOptions,
    "Play": PlayOptions,
    "Language models": LanguageOptions,
}


@takes(PANELS, omit={"games_dir"})
def collect(
    store: Annotated[Path, Argument(help="The store; made where there is none.")],
    as_json: AsJson = False,
    **flags: Any,
) -> None:
    """Play groups of rollouts and record them in a store.

    The same command again plays only what is missing, so it may be interrupted. Example:

        graphcredit collect STORE --env textworld --policy oracle:0.3 --tasks 16 --oracle
    """
    values = given(flags)
    games = GameOptions(**{name: values.pop(name) for name in _GAMES & values.keys()})
    options = CollectOptions(**values)
    tasks = environment_kind(games.env).list_tasks(
        games.games, num_tasks=games.tasks, seed=options.seed, games_dir=options.games_dir
    )
    with interruptible("the same command again goes on"), progress("collect") as show:
        report = collect_tasks(store, tasks, options, on_progress=show)
    if as_json:
        print_json(report.as_json())
    else:
        show_report(report)
    if report.failures:
        raise SystemExit(1)


def show_report(report: CollectReport) -> None:
    """Print what was played, then everything that was out of the ordinary."""
    for line in (*report.notes, *report.failures):
        tell(line)
    if report.num_recovered_steps:
        recovered = counted(report.num_recovered_steps, "step")
        tell(f"{recovered} recovered from workers that died")
    say(
        f"{counted(report.num_trajectories, 'rollout')} of {counted(report.num_tasks, 'task')} "
        f"played, {report.num_already_complete:,} were there already"
    )
    if report.failures:
        say(f"{counted(len(report.failures), 'task')} could not be played")
    if report.num_trajectories:
        say(
            f"{report.num_success:,} succeeded, {report.num_lost:,} lost, "
            f"{report.num_truncated:,} truncated"
        )
        say(
            f"{counted(report.num_steps, 'step')} in {report.seconds:.1f} s, "
            f"{report.steps_per_second:,.0f} steps/s"
        )
