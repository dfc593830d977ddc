"""`graphcredit demo`: play real games, assign credit, and show the result."""

import io
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.text import Text

from graphcredit.cli.commands import demo_report as showcase
from graphcredit.cli.commands.collect import show_report
from graphcredit.cli.options import AsJson
from graphcredit.cli.output.console import interruptible, print_json, progress, say
from graphcredit.cli.parameters import Option
from graphcredit.collector.collection import collect
from graphcredit.collector.environments.registry import environment_kind
from graphcredit.collector.options import CollectOptions
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store.layout import Store, open_store
from graphcredit.store.sql import catalog

ESTIMATORS = ("grpo", "rloo", "gigpo", "rewardflow", "graphgpo")
POLICY = "oracle:0.85"
NUM_GAMES, GROUP_SIZE, MAX_STEPS = 16, 8, 30


def demo(
    store: Annotated[Path, Option(help="Where to keep the rollouts.")] = Path("demo-store"),
    games: Annotated[int, Option(help="Games to play.", min=1)] = NUM_GAMES,
    workers: Annotated[int, Option(help="Processes that play.", min=1)] = 2,
    as_json: AsJson = False,
) -> None:
    """Play TextWorld games, credit every step, and show which steps deserved it.

    The policy takes the shortest path with probability 0.15 and otherwise acts at random. The
    store is kept: the demo ends with a list of commands to try on it. Example:

        graphcredit demo --store my-store --games 8
    """
    with redirect_stdout(io.StringIO()) if as_json else nullcontext():
        told = _show(store, games, workers)
    if as_json:
        print_json(told)


def _show(store: Path, games: int, workers: int) -> dict[str, Any]:
    """Show all parts, and return what they say as JSON values."""
    _title("1. Play", f"{GROUP_SIZE} rollouts of each game; 85 % of the actions are random")
    opened = _play(store, games, workers)
    with catalog.connect(opened) as connection:
        showcase.show_games(connection)

    _title("2. Assign credit", ", ".join(ESTIMATORS))
    settings = CreditSettings(estimators=configure(ESTIMATORS))
    with interruptible("the demo goes on when it is run again"), progress("credit") as show:
        reports = assign_credit(opened, settings, on_progress=show)
    showcase.show_credit(reports)

    with catalog.connect(opened) as connection:
        _title("3. Judge it", "these games know how many actions the goal was away, at every step")
        showcase.show_shares(connection)
        showcase.show_correlations(connection, ESTIMATORS)

        _title("4. A failed rollout", "the one about which GRPO and GraphGPO differ most")
        showcase.show_trajectory(connection, ESTIMATORS)

        picture = showcase.draw_a_game(connection, opened)
        groups = connection.sql("FROM groups ORDER BY task_id").to_arrow_table().to_pylist()

    _title("5. Go on", "with this store, or with your own")
    say(f"  {picture} shows one game: blue steps deserve credit, orange ones blame")
    for line in showcase.next_commands(store):
        say(f"  {line}")
    credit = [{"run_id": r, "iteration": i, **v.as_json()} for (r, i), v in reports.items()]
    return {"store": str(store), "picture": str(picture), "groups": groups, "credit": credit}


def _play(path: Path, games: int, workers: int) -> Store:
    tasks = environment_kind("textworld").list_tasks(None, num_tasks=games, seed=0)
    with interruptible("the demo goes on when it is run again"), progress("play") as show:
        report = collect(
            path,
            tasks,
            CollectOptions(
                policy=POLICY,
                group_size=GROUP_SIZE,
                max_steps=MAX_STEPS,
                workers=workers,
                run="demo",
                oracle=True,
            ),
            on_progress=show,
        )
    show_report(report)
    return open_store(path)


def _title(title: str, subtitle: str) -> None:
    say()
    Console().print(Text.assemble((title, "bold"), "  ", subtitle), soft_wrap=True)
