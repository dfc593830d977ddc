"""Two rollouts of one task side by side, on the Compare page: where they part, and all steps."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import streamlit as st

from graphcredit.store.plural import counted
from graphcredit.viewer.graph.facts import TrajectoryEnd, trajectories
from graphcredit.viewer.graph.state_names import action_words, state_names
from graphcredit.viewer.graph.task_graph import read_task_graph
from graphcredit.viewer.queries.graphs import graph_tasks, task_steps
from graphcredit.viewer.queries.trajectory import steps as trajectory_steps
from graphcredit.viewer.steps.side_by_side import (
    Pair,
    Step,
    aligned,
    fork_of,
    nearest_winner,
    steps_of,
)
from graphcredit.viewer.widgets import missing, selection
from graphcredit.viewer.widgets.cache import ask
from graphcredit.viewer.widgets.tables import choose_row
from graphcredit.viewer.widgets.text import label, show_box, show_text

KIND = "Two rollouts"
"""What the page Compare calls it."""
_SIDES = ("left", "right")


def beside_link(text: str, **changes: Any) -> None:
    """Show a link to a rollout beside the nearest one that won from its step."""
    selection.link("compare", text, other=None, **changes, more={"compare": KIND})


def show_two_rollouts(run: str, iteration: int, estimator: str) -> None:
    """Show boxes of a task, a rollout and another one, and the two side by side."""
    here: dict[str, Any] = {"run_id": run, "iteration": iteration}
    task = selection.choose_task(ask(graph_tasks, **here))
    if task is None:
        st.info("No task of this iteration has a graph.")
        return
    steps = ask(task_steps, **here, task_id=task)
    there = trajectories(steps)
    chosen = _choose(steps, there)
    if chosen is None:
        st.info("This task has one complete rollout: there is none to stand beside it.")
        return
    missing.doubtful_group(steps)
    left, right, meeting = chosen
    pairs = aligned(steps_of(steps, left), steps_of(steps, right), meeting)
    column = f"{estimator}_advantage"
    graph = ask(read_task_graph, **here, task_id=task, column=column)
    names = {state: name.line for state, name in state_names(graph).items()}
    fork = fork_of(pairs)
    num_shared = sum(pair.is_shared for pair in pairs)
    if fork is None:
        st.caption(f"They never part for good; {counted(num_shared, 'step')} start in one state.")
    else:
        endings = there[left].ending, there[right].ending
        _fork(pairs[fork], (left, right), endings, here, names, column)
    _all_steps(pairs, fork, (left, right), names, column)


def _choose(
    steps: pa.Table, there: Mapping[str, TrajectoryEnd]
) -> tuple[str, str, tuple[int, int] | None] | None:
    """Show boxes of two rollouts: a failed one, and the nearest one that won from its step.

    The third that it returns are the step of each in the state from where that one won.
    """

    def show(name: str) -> str:
        return f"{there[name].ending} · {counted(there[name].num_steps, 'step')} · {name}"

    with st.container(horizontal=True):
        left = selection.choose("trajectory", "Rollout", list(there), show=show)
        others = [name for name in there if name != left]
        if selection.current().other not in others:
            selection.select(other=None)
        if left is None or not others:
            return None
        at = selection.current().step
        winner = nearest_winner(steps, left, there[left].num_steps - 1 if at is None else at)
        near = others[-1] if winner is None else winner.trajectory_id
        right = selection.choose("other", "Beside it", others, default=near, show=show)
    if winner is None:
        st.caption("No other rollout won from a state of this one.")
    else:
        further = counted(there[winner.trajectory_id].num_steps - winner.step_index, "step")
        show_text(
            f"From its step {winner.from_step}, {winner.trajectory_id} won soonest: in {further}."
        )
    if right is None:
        return None
    if winner is None or right != winner.trajectory_id:
        return left, right, None
    return left, right, (winner.from_step, winner.step_index)


def _fork(
    pair: Pair,
    chosen: tuple[str, str],
    endings: tuple[str, str],
    here: Mapping[str, Any],
    names: Mapping[int, str],
    column: str,
) -> None:
    """Show the last state that both were in, and what each did there, saw and got."""
    assert pair.left is not None
    st.subheader("Where they part")
    show_text(f"State {pair.left['state_id']}: {names[pair.left['state_id']]}")
    for place, side, name, ending in zip(st.columns(2), _SIDES, chosen, endings, strict=True):
        step = getattr(pair, side)
        with place:
            texts = ask(trajectory_steps, **here, trajectory_id=name).to_pylist()
            told = f"{ending} · step {step['step_index']}"
            credit = "–" if step[column] is None else f"{step[column]:+.3f}"
            selection.link(
                "trajectory", f"{name} · {told}", trajectory=name, step=step["step_index"]
            )
            show_box(step["action"], key=f"fork_action_{side}")
            show_text(f"→ {names[step['next_state_id']]} · credit {credit}")
            show_box(_seen_after(texts, step["step_index"]), key=f"fork_seen_{side}")


def _seen_after(texts: Sequence[Step], index: int) -> str:
    """Return what was seen after a step: the next observation, else the next state."""
    following = texts[index + 1]["observation"] if index + 1 < len(texts) else None
    return following or texts[index]["next_state"]


def _all_steps(
    pairs: Sequence[Pair],
    fork: int | None,
    chosen: tuple[str, str],
    names: Mapping[int, str],
    column: str,
) -> None:
    st.subheader("Step by step")
    st.caption(
        "Steps from one state stand together; ≠ where they go different ways. Tick a row to see "
        "its step."
    )
    cells = [_cells(pair, names, column, is_fork=row == fork) for row, pair in enumerate(pairs)]
    text = st.column_config.TextColumn
    config: dict[str, Any] = {"together": text("both are in", width=230)}
    for side, name in zip(_SIDES, chosen, strict=True):
        whose = label(name)
        config |= {
            f"{side}_step": text("step", help=whose, width=60),
            f"{side}_action": text(f"{side} did", help=whose, width=300),
            f"{side}_credit": text("credit", help=whose, width=80),
        }
    columns = [f"{side}_{part}" for side in _SIDES for part in ("step", "action", "credit")]
    row = choose_row(
        pa.Table.from_pylist(cells),
        [*columns[:3], "together", *columns[3:]],
        key="side_by_side",
        title="Two rollouts, aligned by state",
        config=config,
    )
    if row is not None:
        side = 0 if pairs[row].left else 1
        step = int(cells[row][f"{_SIDES[side]}_step"])
        selection.open_page("trajectory", trajectory=chosen[side], step=step)


def _cells(pair: Pair, names: Mapping[int, str], column: str, *, is_fork: bool) -> dict[str, str]:
    cells = {"together": ""}
    for side in _SIDES:
        step: Step | None = getattr(pair, side)
        credit = None if step is None else step[column]
        cells |= {
            f"{side}_step": "" if step is None else str(step["step_index"]),
            f"{side}_action": "" if step is None else action_words(step["action"], 80),
            f"{side}_credit": "" if credit is None else f"{credit:+.3f}",
        }
        if step is not None and pair.is_shared:
            mark = "fork: " if is_fork else "≠ " if pair.is_parting else ""
            cells["together"] = mark + names[step["state_id"]]
    return cells
