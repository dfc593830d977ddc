"""What is selected lives in the URL, so that every view has a link.

Read it with `current`, change it with `select`, offer it with the `choose_…` functions, lead to
another page with `link` and `open_page`. A menu click opens a page without parameters: `restore`
gives them back what the session saw last.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeVar

import streamlit as st

from graphcredit.store.layout import Store
from graphcredit.viewer import sitemap
from graphcredit.viewer.widgets.text import label, one_line

_MEMORY = "selection"
_MOST_TASKS = 1000
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """The selected things; None where nothing is selected."""

    run: str | None = None
    iteration: int | None = None
    task: str | None = None
    trajectory: str | None = None
    step: int | None = None
    """Index within the trajectory."""
    estimator: str | None = None
    other: str | None = None
    """What is compared with: another estimator, run or iteration, as the page has it."""


_NUMBERS = frozenset({"iteration", "step"})
_INSIDE: dict[str, tuple[str, ...]] = {
    "run": ("iteration", "trajectory", "step"),
    "iteration": ("trajectory", "step"),
    "task": ("trajectory", "step"),
    "trajectory": ("step",),
}
"""What a change of each makes meaningless; a task may well be in the next iteration, too."""


def current() -> Selection:
    """Return what the URL selects; what cannot be a number where one is due selects nothing."""
    found: dict[str, Any] = {}
    for name in Selection.__slots__:
        value = st.query_params.get(name)
        if name in _NUMBERS:
            is_number = value is not None and value.isascii() and value.isdigit()
            found[name] = int(value) if value is not None and is_number else None
        else:
            found[name] = value or None
    return Selection(**found)


def after(**changes: Any) -> Selection:
    """Return what would be selected after some changes.

    Args:
        changes: Fields of `Selection`. What a change makes meaningless, such as the trajectory
            when the task becomes another one, is dropped unless it is among the changes.
    """
    selection = current()
    dropped = {
        name: None
        for outer, value in changes.items()
        if getattr(selection, outer) not in (None, value)
        for name in _INSIDE.get(outer, ())
    }
    return replace(selection, **(dropped | changes))


def select(**changes: Any) -> None:
    """Change what the URL selects; see `after` for the arguments."""
    chosen = _params(after(**changes))
    for name in Selection.__slots__:
        if name not in chosen:
            st.query_params.pop(name, None)
        elif st.query_params.get(name) != chosen[name]:
            st.query_params[name] = chosen[name]
    st.session_state[_MEMORY] = chosen


def restore() -> None:
    """Give a URL that selects nothing what this session selected last; every run begins with it."""
    if current() == Selection():
        remembered: Mapping[str, str] = st.session_state.get(_MEMORY, {})
        for name, value in remembered.items():
            st.query_params[name] = value
    else:
        st.session_state[_MEMORY] = _params(current())


def link(page: str, text: str, **changes: Any) -> None:
    """Show a link to a page.

    Args:
        page: A name in `sitemap.PAGES`.
        text: What to call it; any text of a log may be in it.
        changes: What it selects besides what is selected now; see `after`.
    """
    shown = f":primary[{label(text)}]"
    st.page_link(sitemap.page(page), label=shown, query_params=_params(after(**changes)))


def open_page(page: str, **changes: Any) -> None:
    """Go to a page at once, as a click on a row does; see `link` for the arguments."""
    st.switch_page(sitemap.page(page), query_params=_params(after(**changes)))


def choose(
    name: str,
    title: str,
    options: Sequence[_T],
    *,
    default: _T | None = None,
    show: Callable[[Any], str] = str,
    help: str | None = None,  # noqa: A002  (Streamlit's name)
    width: int | Literal["stretch"] = "stretch",
) -> _T | None:
    """Offer a field of the selection as a select box that the URL and the user both set.

    Args:
        name: The field.
        title: What to call it.
        options: What there is to choose from.
        default: What to choose where the URL does not say; the first option by default.
        show: Makes an option's text; it is put on one line and made visible.
        help: What the field is.
        width: Of the box, in pixels; by default what is left beside others.

    Returns:
        The chosen option, which the URL then holds; None if there are no options.
    """
    if not options:
        return None
    wanted = getattr(current(), name)
    if wanted not in options:
        if wanted is not None:
            st.warning(f"The {title.lower()} of the address is not here: another one is shown.")
        wanted = options[0] if default is None else default
        select(**{name: wanted})
    key = f"choose_{name}"
    st.session_state[key] = wanted
    st.selectbox(
        title,
        options,
        key=key,
        format_func=lambda option: one_line(show(option)),
        help=help,
        width=width,
        on_change=lambda: select(**{name: st.session_state[key]}),
    )
    return wanted


def choose_run(store: Store) -> str | None:
    """Offer the runs of the store, the last one by name first chosen."""
    runs = store.runs()
    return choose("run", "Run", runs, default=runs[-1] if runs else None, width=180)


def choose_iteration(store: Store, run_id: str) -> int | None:
    """Offer the iterations of a run, the last one with credit first chosen."""
    iterations = store.iterations(run_id)
    credited = [i for i in iterations if store.graph_dir(run_id, i).exists()]
    last = [*iterations[-1:], *credited[-1:]]
    return choose(
        "iteration", "Iteration", iterations, default=last[-1] if last else None, width=110
    )


def choose_task(tasks: Sequence[str]) -> str | None:
    """Offer the first tasks and the selected one: a browser cannot hold a list of all."""
    wanted = current().task
    offered, others = list(tasks[:_MOST_TASKS]), tasks[_MOST_TASKS:]
    if wanted is not None and wanted in others:
        offered.insert(0, wanted)
    help_ = f"The first {_MOST_TASKS:,} of {len(tasks):,}; the Tasks page finds all."
    return choose("task", "Task", offered, help=help_ if others else None)


def choose_estimator(estimators: Sequence[str]) -> str | None:
    """Offer estimators in the order of `queries.estimators`, the first one first chosen."""
    return choose(
        "estimator",
        "Estimator",
        estimators,
        help="Whose advantages decide colours and ranks.",
        width=180,
    )


def _params(selection: Selection) -> dict[str, str]:
    return {name: str(value) for name, value in asdict(selection).items() if value is not None}
