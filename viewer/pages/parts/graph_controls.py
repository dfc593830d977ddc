"""Controls that only the Graph page has. Their values are also in the URL."""

from collections.abc import Callable, Sequence

import streamlit as st

from graphcredit.viewer.graph.task_graph import Ends, TaskGraph, edge_key, node_key
from graphcredit.viewer.graph.visible_part import READABLE
from graphcredit.viewer.widgets import selection

_PICKED = "at"
_WORDS = "find"
_SHOWN_TASK = "graph_of"
_VIEWS = {
    "matters": "What matters",
    "around": "State",
    "trajectory": "Trajectory",
    "everything": "All",
}


def picked() -> str:
    """Return the key of the picked state or transition; empty if there is none."""
    return st.query_params.get(_PICKED, "")


def pick(key: str) -> None:
    """Select a state or a transition by its key; an empty key selects nothing."""
    _put(_PICKED, key or None)
    st.query_params.pop("step", None)


def words() -> str:
    """Return the words that states are searched for; empty for no search."""
    return st.query_params.get(_WORDS, "")


def search(words: str) -> None:
    """Search for states by words of their text; empty words end the search."""
    _put(_WORDS, words or None)


def picked_key(selected: int | Ends | None) -> str | None:
    """Return the key of the selected state or transition."""
    if selected is None:
        return None
    return edge_key(selected) if isinstance(selected, tuple) else node_key(selected)


def forget_when_changed(shown: tuple[str, int, str]) -> None:
    """Drop the pick when another graph is shown: its states have other numbers."""
    if st.session_state.get(_SHOWN_TASK, shown) != shown:
        _put(_PICKED, None)
        _put(_WORDS, None)
    st.session_state[_SHOWN_TASK] = shown


def choose_view(graph: TaskGraph, *, has_trajectory: bool) -> str:
    """Show a choice of parts of the graph, and return its key; the default is a readable one."""
    names = [name for name in _VIEWS if name != "trajectory" or has_trajectory]
    small = len(graph.nodes) <= READABLE
    default = "everything" if small else "matters"
    return _segments("view", "Part", names, default, _VIEWS.__getitem__)


def _segments(
    name: str, title: str, options: Sequence[str], default: str, show: Callable[[str], str] = str
) -> str:
    wanted = st.query_params.get(name, default)
    chosen = wanted if wanted in options else default
    if wanted != chosen:
        selection.not_here(title, wanted, show(chosen))
        _put(name, None)
    key = f"graph_{name}"
    st.session_state[key] = chosen
    st.segmented_control(
        title,
        options,
        key=key,
        required=True,
        format_func=show,
        on_change=lambda: _put(name, st.session_state[key]),
    )
    return chosen


def _put(name: str, value: str | None) -> None:
    if value is None:
        st.query_params.pop(name, None)
    else:
        st.query_params[name] = value
