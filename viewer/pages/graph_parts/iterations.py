"""The Graph page over iterations: the graphs of one task, in one drawing with a slider."""

from dataclasses import dataclass

import streamlit as st

from graphcredit.store.errors import InputError
from graphcredit.store.plural import counted
from graphcredit.viewer.graph.frames import Frames
from graphcredit.viewer.graph.over_iterations import OverIterations, over_iterations
from graphcredit.viewer.graph.shading import Ends
from graphcredit.viewer.graph.task_graph import TaskGraph, read_task_graph
from graphcredit.viewer.widgets.cache import ask, viewed_store
from graphcredit.viewer.widgets.text import show_text
from graphcredit.viewer.widgets.text_box import show_box

MOST = 40
"""Most iterations to draw."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadIterations:
    """The graphs of a task, and which iterations have none."""

    over: OverIterations
    lacking: tuple[int, ...]
    """Iterations without this task or without credit of this estimator."""
    left_out: int
    """How many more have a graph than are drawn."""

    def frames(self, states: frozenset[int]) -> Frames:
        """Return the iterations of a drawing of some states."""
        parts = {number: graph.part(states) for number, graph in self.over.graphs.items()}
        return Frames(graphs=parts, first=self.over.base)


def iterations_with_graphs(run_id: str) -> list[int]:
    """Return the iterations of a run that have graphs."""
    store = viewed_store()
    return [
        number for number in store.iterations(run_id) if store.graph_dir(run_id, number).exists()
    ]


def read_iterations(
    base: TaskGraph, *, run_id: str, iteration: int, task_id: str, column: str
) -> ReadIterations:
    """Return the graphs of a task in all iterations; of many, the chosen one and even steps.

    Args:
        base: The graph of the chosen iteration.
        run_id: The run.
        iteration: The chosen iteration.
        task_id: The task.
        column: The advantage on the transitions.
    """
    numbers = iterations_with_graphs(run_id)
    step = -(-len(numbers) // MOST)
    drawn = sorted({iteration, *numbers[::step]})
    graphs = {iteration: base}
    lacking: list[int] = []
    for number in drawn:
        if number == iteration:
            continue
        try:
            graphs[number] = ask(
                read_task_graph, run_id=run_id, iteration=number, task_id=task_id, column=column
            )
        except InputError:
            lacking.append(number)
    return ReadIterations(
        over=over_iterations(dict(sorted(graphs.items())), iteration),
        lacking=tuple(lacking),
        left_out=len({iteration, *numbers}) - len(drawn),
    )


def say_which(found: ReadIterations, *, is_compared: bool) -> None:
    """Say which iterations are drawn, and what the lists beside the graph are about."""
    words = [
        f"{counted(len(found.over.graphs), 'iteration')} on the slider, in which states are the "
        f"same if their texts are equal. The lists are those of iteration {found.over.base}."
    ]
    if found.lacking:
        names = ", ".join(map(str, found.lacking))
        words.append(f"Without this task or its credit: iteration {names}.")
    if found.left_out:
        words.append(f"{counted(found.left_out, 'iteration')} between them are left out.")
    if is_compared:
        words.append("The colours of a comparison are not shown over iterations.")
    st.caption(" ".join(words))


def show_elsewhere(over: OverIterations, selected: int | Ends) -> None:
    """Show a state or a transition that the chosen iteration does not have."""
    states = selected if isinstance(selected, tuple) else (selected,)
    for number, state in enumerate(states):
        node = next(node for node in over.whole.nodes if node.state_id == state)
        seen = ", ".join(map(str, over.seen_in(state)))
        show_text(f"State {state} of iteration {seen}; the lists are those of {over.base}")
        show_box(node.state, key=f"elsewhere_{number}")
