"""`graphcredit demo`: play real games, assign credit, and show the result."""

import io
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.text import Text

from graphcredit.cli.commands.audit import show_audit
from graphcredit.cli.commands.collect import show_report
from graphcredit.cli.commands.credit_report import show_reports
from graphcredit.cli.options import AsJson
from graphcredit.cli.output.console import interruptible, print_json, progress, say
from graphcredit.cli.parameters import Option
from graphcredit.collector.collection import collect
from graphcredit.collector.environments.registry import environment_kind
from graphcredit.collector.options import CollectOptions
from graphcredit.credit.audit.run import audit
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store.files.atomic import atomic_path
from graphcredit.store.layout import Store, open_store
from graphcredit.store.sql import catalog
from graphcredit.viewer.graph.svg import draw
from graphcredit.viewer.graph.task_graph import read_task_graph

ESTIMATORS = ("grpo", "rloo", "gigpo", "rewardflow", "graphgpo")
POLICY = "oracle:0.85"
NUM_GAMES, GROUP_SIZE, MAX_STEPS = 16, 8, 30

_PICTURED_STATES = 14
"""Number of nodes of a graph that is rich and still legible on a page."""


def demo(
    store: Annotated[Path, Option(help="Where to keep the rollouts.")] = Path("demo-store"),
    games: Annotated[int, Option(help="Games to play.", min=1)] = NUM_GAMES,
    workers: Annotated[int, Option(help="Processes that play.", min=1)] = 2,
    as_json: AsJson = False,
) -> None:
    """Play TextWorld games, credit every step, and judge the credit by what the games know.

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

    _title("2. Assign credit", ", ".join(ESTIMATORS))
    settings = CreditSettings(estimators=configure(ESTIMATORS))
    with interruptible("the demo goes on when it is run again"), progress("credit") as show:
        reports = assign_credit(opened, settings, on_progress=show)
    show_reports(reports, settings.rows)

    _title("3. Judge it", "these games know how many actions the goal was away, at every step")
    with interruptible("an audit changes nothing"), progress("audit") as show:
        found = audit(opened, on_progress=show)
    show_audit(found)

    _title("4. Go on", "with this store, or with your own")
    picture = _draw_a_game(opened)
    say(f"  {picture} shows one game: blue steps deserve credit, orange ones blame")
    for line in _next_commands(store):
        say(f"  {line}")
    credit = [{"run_id": r, "iteration": i, **v.as_json()} for (r, i), v in reports.items()]
    return {
        "store": str(store),
        "picture": str(picture),
        "credit": credit,
        "audit": found.as_json(),
    }


def _draw_a_game(store: Store) -> Path:
    """Draw a graph of legible size as SVG, beside the store, and return its path."""
    with catalog.connect(store) as connection:
        ((run_id, iteration, task_id),) = connection.execute(
            """
            SELECT run_id, iteration, task_id FROM nodes GROUP BY ALL
            ORDER BY bool_or(is_goal) DESC, abs(count(*) - ?), task_id LIMIT 1
            """,
            [_PICTURED_STATES],
        ).fetchall()
    column = "graphgpo_step_advantage"
    graph = read_task_graph(
        store, run_id=run_id, iteration=iteration, task_id=task_id, column=column
    )
    path = store.root.with_name(f"{store.root.name}-{task_id}.svg")
    with atomic_path(path) as temporary:
        temporary.write_text(
            draw(graph, title=f"{task_id}: step advantage by GraphGPO"), encoding="utf-8"
        )
    return path


def _next_commands(store: Path) -> Iterator[str]:
    """Yield commands that go on from the demo's store; they work as they are printed."""
    program = "graphcredit"
    if shutil.which(program) is None:
        program = os.path.relpath(Path(sys.prefix) / "bin" / program)
    yield f"{program} check {store}"
    yield f"{program} audit {store}"
    yield f'{program} sql {store} "SELECT * FROM groups"'
    yield f"{program} credit {store} -e graphgpo --set graphgpo.distance_discount=0.5"
    yield f"{program} view {store}"


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
