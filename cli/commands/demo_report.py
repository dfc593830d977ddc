"""Output of the demo: a function for each table, text and picture of a credited store."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from graphcredit.cli.output.console import say
from graphcredit.credit.audit.agreement import PROGRESS, mean_agreement
from graphcredit.credit.iteration.report import CreditReport, merge_reports
from graphcredit.store import Store
from graphcredit.store.files.atomic import atomic_path
from graphcredit.store.log_text import in_terminal
from graphcredit.store.sql.catalog import Connection
from graphcredit.viewer.graph.svg import draw
from graphcredit.viewer.graph.task_graph import read_task_graph

_PIPE_WIDTH = 200
_PICTURED_STATES = 14
"""Number of nodes of a graph that is rich and still legible on a page."""


def show_games(connection: Connection) -> None:
    """Print a row per game: rollouts, success, steps."""
    rows = connection.sql(
        """
        SELECT task_id, num_trajectories, success_rate, mean_return, num_steps
        FROM groups ORDER BY task_id
        """
    ).fetchall()
    table = _table("game", "rollouts", "success", "mean return", "steps")
    for task_id, rollouts, success, mean_return, steps in rows:
        name = task_id.removeprefix("textworld-")
        table.add_row(name, str(rollouts), f"{success:.0%}", f"{mean_return:.2f}", f"{steps:,}")
    _print_wide(table)


def show_credit(reports: dict[tuple[str, int], CreditReport]) -> None:
    """Print the counts of the credit stage, in two lines."""
    total = merge_reports(reports.values())
    say(
        f"{total.num_steps:,} steps of {total.num_trajectories:,} rollouts merged into "
        f"{total.num_states:,} states and {total.num_edges:,} transitions;"
    )
    say(
        f"all returns are equal in {total.num_degenerate_groups} of {total.num_groups} groups; "
        f"from {total.unreachable_share:.0%} of the states nobody reached the goal."
    )


def show_shares(connection: Connection) -> None:
    """Print how often steps of failures made progress, and how often steps of successes did not."""
    ((num_failed, progress, num_won, idle),) = connection.sql(
        f"""
        SELECT count_if(NOT success), avg((gained > 0)::INT) FILTER (NOT success),
            count_if(success), avg((gained <= 0)::INT) FILTER (success)
        FROM (SELECT run_id, iteration, trajectory_id, {PROGRESS} AS gained FROM steps)
        JOIN (FROM trajectories WHERE is_complete) USING (run_id, iteration, trajectory_id)
        WHERE isfinite(gained)
        """
    ).fetchall()
    say(
        f"{progress or 0:.1%} of the {num_failed:,} steps of failed rollouts led "
        f"nearer to the goal (the papers report 22.0 % on ALFWorld);"
    )
    say(
        f"{idle or 0:.1%} of the {num_won:,} steps of successful ones did not "
        "(the papers: 65.3 %); steps that lost a game are not counted."
    )


def show_correlations(connection: Connection, estimators: Sequence[str]) -> None:
    """Print each estimator's rank correlation with the true progress of a step."""
    say("Rank correlation (Spearman) with a step's progress, mean over the games:")
    table = _table("", "all steps", "steps of failures")
    for name in estimators:
        mean = mean_agreement(connection, f"{name}_advantage")
        table.add_row(name, _signed(mean.over_all), _signed(mean.over_failed))
    _print_wide(table)


def show_trajectory(connection: Connection, estimators: Sequence[str]) -> None:
    """Print the failed trajectory whose steps GRPO and GraphGPO judge most differently."""
    chosen = connection.sql(
        """
        SELECT trajectory_id, any_value(task_id) FROM enriched
        JOIN (SELECT trajectory_id FROM trajectories WHERE NOT success AND num_steps <= 30)
            USING (trajectory_id)
        GROUP BY trajectory_id
        ORDER BY count_if(grpo_advantage < 0 AND graphgpo_advantage > 0) DESC, trajectory_id
        LIMIT 1
        """
    ).fetchall()
    for trajectory_id, task_id in chosen:
        columns = ", ".join(f"{name}_advantage" for name in estimators)
        steps = connection.execute(
            f"""
            SELECT step_index, action, oracle_distance, next_oracle_distance, {columns}
            FROM enriched WHERE trajectory_id = ? ORDER BY step_index
            """,
            [trajectory_id],
        ).fetchall()
        say(f"{trajectory_id} of {task_id}")
        _print_wide(_trajectory_table(steps, estimators))
        say(
            "to go: actions to the goal before and after, bold where fewer. "
            "≠: the estimators disagree about the sign."
        )


def draw_a_game(connection: Connection, store: Store) -> Path:
    """Draw a graph of legible size as SVG, beside the store, and return its path."""
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


def next_commands(store: Path) -> Iterator[str]:
    """Yield commands that go on from the demo's store; they work as they are printed."""
    program = "graphcredit"
    if shutil.which(program) is None:
        program = os.path.relpath(Path(sys.prefix) / "bin" / program)
    yield f"{program} check {store}"
    yield f"{program} audit {store}"
    yield f'{program} sql {store} "SELECT * FROM groups"'
    yield f"{program} credit {store} -e graphgpo --set graphgpo.distance_discount=0.5"
    yield f"{program} view {store}"


def _trajectory_table(steps: Sequence[Sequence[Any]], estimators: Sequence[str]) -> Table:
    table = _table("step", "action", "to go", *estimators, "")
    for index, action, before, after, *advantages in steps:
        signs = {value > 0 for value in advantages if value}
        distances = [f"{value:g}" for value in (before, after) if value is not None]
        is_progress = len(distances) == 2 and before > after
        table.add_row(
            str(index),
            Text(in_terminal(action)),
            Text(" → ".join(distances), style="bold" if is_progress else ""),
            *(_coloured(value) for value in advantages),
            "≠" if len(signs) > 1 else "",
        )
    table.columns[1].justify = "left"
    table.columns[1].no_wrap = False
    return table


def _print_wide(table: Table) -> None:
    """Print a table; a pipe has no width, so the table gets a wide one there."""
    out = Console()
    out.print(table, width=None if out.is_terminal else _PIPE_WIDTH)


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _coloured(value: float | None) -> Text:
    style = "" if not value else "blue" if value > 0 else "red"
    return Text(_signed(value), style=style)


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.2f}"
