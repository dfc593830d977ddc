"""The selection (run, iteration, task, …), which is kept in the URL, so that every view has a link.

Read it with `current`, change it with `select`, show select boxes with the `choose_…` functions, go
to another page with `link` and `open_page`. A click in the menu opens a page without parameters:
`restore` then sets those that the session had last.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeVar

import streamlit as st

from graphcredit.store.layout import Store
from graphcredit.store.log_text import one_line
from graphcredit.viewer import sitemap
from graphcredit.viewer.widgets import missing
from graphcredit.viewer.widgets.cache import ask
from graphcredit.viewer.widgets.task_names import task_names, task_title
from graphcredit.viewer.widgets.text import code_label, label

_MEMORY = "selection"
_MOST_TASKS = 1000
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """The selection; None for what is not selected."""

    run: str | None = None
    iteration: int | None = None
    task: str | None = None
    trajectory: str | None = None
    step: int | None = None
    """Index within the trajectory."""
    estimator: str | None = None


_NUMBERS = frozenset({"iteration", "step"})
_INSIDE: dict[str, tuple[str, ...]] = {
    "run": ("iteration", "trajectory", "step"),
    "iteration": ("trajectory", "step"),
    "task": ("trajectory", "step"),
    "trajectory": ("step",),
}
"""Fields that a change of each field invalidates. A task may exist in the next iteration, too."""


def current() -> Selection:
    """Return the selection in the URL; an invalid number counts as nothing selected."""
    fields: dict[str, Any] = {}
    for name in Selection.__slots__:
        value = st.query_params.get(name)
        if name in _NUMBERS:
            fields[name] = int(value) if value is not None and _is_number(value) else None
        else:
            fields[name] = value or None
    return Selection(**fields)


def after(**changes: Any) -> Selection:
    """Return the selection after some changes.

    Args:
        changes: Fields of `Selection`. Fields that a change invalidates, such as the trajectory
            when the task changes, are dropped unless they are among the changes.
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
    """Change the selection in the URL; see `after` for the arguments."""
    chosen = _params(after(**changes))
    for name in Selection.__slots__:
        if name not in chosen:
            st.query_params.pop(name, None)
        elif st.query_params.get(name) != chosen[name]:
            st.query_params[name] = chosen[name]
    st.session_state[_MEMORY] = chosen


def restore() -> None:
    """Set an empty selection to the session's last one; called at the start of every script run."""
    if current() == Selection():
        remembered: Mapping[str, str] = st.session_state.get(_MEMORY, {})
        for name, value in remembered.items():
            st.query_params[name] = value
    else:
        st.session_state[_MEMORY] = _params(current())


def not_here(title: str, wanted: str, instead: str) -> None:
    """Name a value of the address that cannot be shown, and what is shown instead."""
    st.warning(
        f"The address asks for the {title.lower()} {code_label(wanted)}, which is not here: "
        f"{code_label(instead)} is shown."
    )


def name_bad_numbers() -> None:
    """Name the values of the address that must be numbers and are not."""
    for name in sorted(_NUMBERS & {*st.query_params}):
        value = st.query_params[name]
        if value and not _is_number(value):
            st.warning(
                f"The address asks for the {name} {code_label(value)}, which must be a number "
                "from 0 on."
            )


def link(page: str, text: str, **changes: Any) -> None:
    """Show a link to a page.

    Args:
        page: A name in `sitemap.PAGES`.
        text: Its label; it may contain text from a log.
        changes: Changes to the current selection; see `after`.
    """
    shown = f":primary[{label(text)}]"
    st.page_link(sitemap.page(page), label=shown, query_params=_params(after(**changes)))


def open_page(page: str, **changes: Any) -> None:
    """Switch to a page at once, for clicks on rows; see `link` for the arguments."""
    st.switch_page(sitemap.page(page), query_params=_params(after(**changes)))


def choose(
    name: str,
    title: str,
    options: Sequence[_T],
    *,
    default: _T | None = None,
    nothing: str | None = None,
    show: Callable[[Any], str] = str,
    help: str | None = None,  # noqa: A002  (Streamlit's name)
    width: int | Literal["stretch"] = "stretch",
) -> _T | None:
    """Show a select box for a field of the selection, in sync with the URL.

    Args:
        name: The field.
        title: The label of the box.
        options: The options.
        default: The choice if the URL has none; by default the first option.
        nothing: Text of a first option that selects nothing, which is then the default.
        show: Returns the text of an option, which is put on one line and made visible.
        help: Help text of the box.
        width: Width of the box in pixels; by default the room that other boxes leave.

    Returns:
        The chosen option, which is then in the URL; None for nothing, or if there are no options.
    """
    offered: list[Any] = [*([] if nothing is None else [""]), *options]
    if not offered:
        return None

    def words(option: Any) -> str:
        return nothing if nothing is not None and option == "" else show(option)

    wanted = getattr(current(), name)
    if wanted not in offered:
        instead = offered[0] if default is None else default
        if wanted is not None:
            not_here(title, str(wanted), words(instead))
        wanted = instead
        select(**{name: None if wanted == "" else wanted})
    key = f"choose_{name}"
    st.session_state[key] = wanted
    st.selectbox(
        title,
        offered,
        key=key,
        format_func=lambda option: one_line(words(option)),
        help=help,
        width=width,
        on_change=lambda: select(
            **{name: None if st.session_state[key] == "" else st.session_state[key]}
        ),
    )
    return None if wanted == "" else wanted


def choose_place(store: Store) -> tuple[str, int] | None:
    """Show boxes of run and iteration; say what to do if the store has none, and return None."""
    run = choose_run(store)
    iteration = None if run is None else choose_iteration(store, run)
    if run is None or iteration is None:
        missing.no_steps(store)
        return None
    return run, iteration


def choose_run(store: Store) -> str | None:
    """Show a box of the store's runs; the default is the last by name."""
    runs = store.runs()
    return choose("run", "Run", runs, default=runs[-1] if runs else None, width=180)


def choose_iteration(store: Store, run_id: str) -> int | None:
    """Show a box of a run's iterations; the default is the last one with credit."""
    iterations = store.iterations(run_id)
    credited = [i for i in iterations if store.graph_dir(run_id, i).exists()]
    last = [*iterations[-1:], *credited[-1:]]
    return choose(
        "iteration", "Iteration", iterations, default=last[-1] if last else None, width=110
    )


def choose_task(tasks: Sequence[str]) -> str | None:
    """Show a box of the first tasks and the selected one: a list of all may be too long.

    Run and iteration must be selected.
    """
    wanted = current().task
    offered, others = list(tasks[:_MOST_TASKS]), tasks[_MOST_TASKS:]
    if wanted is not None and wanted in others:
        offered.insert(0, wanted)
    help_ = f"The first {_MOST_TASKS:,} of {len(tasks):,}; the Tasks page finds all."
    names = ask(task_names, run_id=current().run or "", iteration=current().iteration)

    def show(task: str) -> str:
        return task_title(task, names.get(task))

    return choose("task", "Task", offered, show=show, help=help_ if others else None)


def choose_estimator(estimators: Sequence[str]) -> str | None:
    """Show a box of estimators in the order of `queries.estimators`; the default is the first."""
    return choose(
        "estimator",
        "Estimator",
        estimators,
        help="The estimator whose advantages set colours and ranks.",
        width=180,
    )


def _is_number(value: str) -> bool:
    return value.isascii() and value.isdigit()


def _params(selection: Selection) -> dict[str, str]:
    return {name: str(value) for name, value in asdict(selection).items() if value is not None}
