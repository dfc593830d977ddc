"""What to read first, on the Tasks page: decisions that mattered, what recurs in failures."""

from collections.abc import Mapping

import pyarrow as pa
import streamlit as st

from graphcredit.store.plural import counted
from graphcredit.viewer.browser_fixes import opened
from graphcredit.viewer.graph.state_names import action_words
from graphcredit.viewer.pages.parts.two_rollouts import beside_link
from graphcredit.viewer.why.decisions import decisions
from graphcredit.viewer.why.recurring import recurring
from graphcredit.viewer.why.sentences import sentence
from graphcredit.viewer.widgets import selection
from graphcredit.viewer.widgets.cache import ask
from graphcredit.viewer.widgets.task_names import TaskName, task_title
from graphcredit.viewer.widgets.text import one_line, show_text

_SHOWN = 5
_CLUSTERS, _EXAMPLES = 8, 3
_AT_ONCE = 200_000
"""Steps up to which they are looked for without being asked to."""


def show_first(run: str, iteration: int, names: Mapping[str, TaskName], *, num_steps: int) -> None:
    """Show the sentences of an iteration with credit by `reach`, each with a link to its step.

    Args:
        run: The run.
        iteration: The iteration.
        names: Of its tasks.
        num_steps: Its steps: of very many, nothing is shown before it is asked for.
    """
    title = "What to read first"
    if num_steps > _AT_ONCE:
        inside = opened(title, key="first_decisions")
        if inside is None:
            return
    else:
        st.subheader(title)
        inside = st.container()
    with inside:
        shown = ask(decisions, run_id=run, iteration=iteration, most=_SHOWN)
        for each in shown:
            selection.link(
                "trajectory",
                f"{one_line(task_title(each.task_id, names.get(each.task_id)), 44)}: "
                f"{action_words(each.action, 34)}",
                task=each.task_id,
                trajectory=each.trajectory_id,
                step=each.step_index,
                estimator="reach",
            )
            show_text(sentence(each))
        if not shown:
            st.caption(
                "In no group did several rollouts visit a state, do different things there, and "
                "end differently."
            )


def in_numbers(facts: pa.Table) -> str:
    """Return the iteration in a sentence.

    Args:
        facts: Its tasks, as `task_facts` returns them.
    """
    rows = facts.select(["num_trajectories", "success_rate", "is_degenerate"]).to_pylist()
    num_rollouts = sum(row["num_trajectories"] for row in rows)
    num_won = sum(row["num_trajectories"] * (row["success_rate"] or 0) for row in rows)
    num_alike = sum(bool(row["is_degenerate"]) for row in rows)
    words = [f"{counted(num_rollouts, 'complete rollout')} of {counted(len(rows), 'task')}"]
    if num_rollouts:
        words.append(f"{num_won / num_rollouts:.0%} succeeded")
    if num_alike:
        words.append(f"{counted(num_alike, 'task')} in which all have one return")
    return " · ".join(words)


def show_recurring(run: str, iteration: int) -> None:
    """Show what recurs in the failures of an iteration, when it is asked for."""
    inside = opened("What recurs in failures", key="recurring")
    if inside is None:
        return
    with inside:
        shown = ask(recurring, run_id=run, iteration=iteration)
        for cluster in shown.clusters[:_CLUSTERS]:
            show_text(cluster.sentence)
            with st.container(horizontal=True):
                for each in cluster.members[:_EXAMPLES]:
                    beside_link(
                        f"{one_line(each.trajectory_id, 30)}, step {each.step_index}",
                        task=each.task_id,
                        trajectory=each.trajectory_id,
                        step=each.step_index,
                    )
        left_out = len(shown.clusters) - _CLUSTERS
        more = f" {counted(left_out, 'smaller cluster')} are not listed." if left_out > 0 else ""
        st.caption(f"{shown.summary or 'No complete rollout failed.'}{more}")
