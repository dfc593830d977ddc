"""Output of the demo: a function for each table and text of a credited store."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from graphcredit.cli.output.console import PLAIN, out
from graphcredit.cli.output.escape import plain_text
from graphcredit.credit.audit.agreement import mean_agreement, step_shares
from graphcredit.credit.iteration.report import CreditReport, merge_reports
from graphcredit.store.sql.catalog import Connection

_PIPE_WIDTH = 200


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
    out.print(
        f"{total.num_steps:,} steps of {total.num_trajectories:,} trajectories merged into "
        f"{total.num_states:,} states and {total.num_edges:,} transitions;\n"
        f"all returns are equal in {total.num_degenerate_groups} of {total.num_groups} groups; "
        f"from {total.unreachable_share:.0%} of the states nobody reached the goal.",
        **PLAIN,
    )


def show_shares(connection: Connection) -> None:
    """Print how often steps of failures made progress, and how often steps of successes did not."""
    shares = step_shares(connection)
    progress = shares.num_failed_progress / max(shares.num_failed_steps, 1)
    idle = shares.num_successful_idle / max(shares.num_successful_steps, 1)
    out.print(
        f"{progress:.1%} of the {shares.num_failed_steps:,} steps of failed trajectories led "
        f"nearer to the goal (the papers report 22.0 % on ALFWorld);\n"
        f"{idle:.1%} of the {shares.num_successful_steps:,} steps of successful ones did not "
        "(the papers: 65.3 %); steps that lost a game are not counted.\n"
        "Credit for whole trajectories cannot tell these steps from the others.",
        **PLAIN,
    )


def show_correlations(connection: Connection, estimators: Sequence[str]) -> None:
    """Print each estimator's rank correlation with the true progress of a step."""
    out.print("Rank correlation (Spearman) with a step's progress, mean over the games:")
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
        out.print(f"{trajectory_id} of {task_id}", **PLAIN)
        _print_wide(_trajectory_table(steps, estimators))
        out.print(
            "to go: actions to the goal before and after, bold where fewer. "
            "≠: the estimators disagree about the sign.",
            **PLAIN,
        )


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
            Text(plain_text(action)),
            Text(" → ".join(distances), style="bold" if is_progress else ""),
            *(_coloured(value) for value in advantages),
            "≠" if len(signs) > 1 else "",
        )
    table.columns[1].justify = "left"
    table.columns[1].no_wrap = False
    return table


def _print_wide(table: Table) -> None:
    """Print a table; a pipe has no width, so the table gets a wide one there."""
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
