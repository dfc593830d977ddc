"""The SQL page: one query over the views, which can read nothing else."""

from dataclasses import dataclass

import streamlit as st

from graphcredit.store.confined.limits import MIB
from graphcredit.store.errors import GraphcreditError
from graphcredit.store.log_text import visible
from graphcredit.store.plural import counted
from graphcredit.store.sql.result import QueryResult
from graphcredit.store.sql.sandbox import run_query
from graphcredit.store.sql.values import for_parquet
from graphcredit.store.sql.views import BASE_VIEWS, CREDIT_STATE, DERIVED_VIEWS, VIEW_NAMES
from graphcredit.viewer.widgets import missing
from graphcredit.viewer.widgets.cache import viewed_store
from graphcredit.viewer.widgets.text import show_box, show_code, show_table

READY: dict[str, str] = {
    "Groups that teach nothing": """SELECT run_id, iteration, task_id, num_steps, success_rate
FROM groups
WHERE is_degenerate
ORDER BY ALL""",
    "Failed rollouts": """SELECT run_id, iteration, task_id, trajectory_id, num_steps, "return"
FROM trajectories
WHERE success = false
ORDER BY num_steps DESC
LIMIT 100""",
    "Steps that went away from the goal": """SELECT
    task_id, trajectory_id, step_index, action,
    next_oracle_distance - oracle_distance AS lost
FROM steps
WHERE next_oracle_distance > oracle_distance
ORDER BY lost DESC
LIMIT 100""",
}
"""Title to query."""


_PARAMETER = "q"
"""Name of the URL parameter with the query: a link to this page is a saved query."""
_TEXT = "text"
"""Key of the text box in the session."""

_MAX_ROWS = 10_000
_SECONDS = 20.0
_MEMORY = 512 * MIB


@dataclass(frozen=True, kw_only=True, slots=True)
class _Answer:
    """The result of a query. It is kept, so that other clicks on the page do not run it again."""

    sql: str
    result: QueryResult | None
    error: str | None


def show() -> None:
    """Show the page."""
    st.header("SQL")
    _ready()
    sql = st.query_params.get(_PARAMETER, "")
    _put(sql)
    with st.form("query", border=False):
        st.text_area("Query", key=_TEXT, height=180, placeholder="SELECT … FROM steps")
        is_run = st.form_submit_button("Run", shortcut="Ctrl+Enter", on_click=_submit)
    st.caption(
        f"The views are {', '.join(VIEW_NAMES)}. The address of this page holds the query: "
        "a bookmark saves it. A query can read only these views, cannot write, and ends after "
        f"{_SECONDS:g} s or {_MEMORY // MIB} MiB."
    )
    if not sql:
        _show_views()
        return
    answer: _Answer | None = st.session_state.get("answer")
    if answer is None or answer.sql != sql or is_run:
        answer = _ask(sql)
        st.session_state["answer"] = answer
    _show_answer(answer)
    _show_views()


def _show_views() -> None:
    """List the views with the columns that every store has."""
    with st.expander("Views and columns"):
        lines = (
            f"{view.name}: {', '.join(column.name for column in view.all_columns([]))}"
            for view in BASE_VIEWS
        )
        show_box("\n".join(lines), key="views")
        st.caption(
            "Each estimator adds `ESTIMATOR_advantage` and its parts to `credit` and `edges`. "
            f"Made of these are {', '.join((*DERIVED_VIEWS, CREDIT_STATE))}: `enriched` has the "
            "columns of `steps` and `credit`."
        )


def _put(sql: str) -> None:
    """Put the URL's query into the text box, unless it was the last one put there.

    The box has no `value`, because a new value would make a new box, and the next input would go to
    the old one.
    """
    if _TEXT not in st.session_state or st.session_state.get("put") != sql:
        st.session_state[_TEXT] = st.session_state["put"] = sql


def _submit() -> None:
    st.query_params[_PARAMETER] = st.session_state[_TEXT].strip()


def _ready() -> None:
    def use() -> None:
        title = st.session_state["ready"]
        if title is not None:
            st.query_params[_PARAMETER] = READY[title]
            st.session_state["ready"] = None

    st.selectbox(
        "Ready queries",
        list(READY),
        index=None,
        key="ready",
        on_change=use,
        placeholder="Choose one to run it, then edit it",
    )


def _ask(sql: str) -> _Answer:
    with st.spinner("Running the query …"):
        try:
            store = viewed_store()
            result = run_query(store, sql, max_rows=_MAX_ROWS, seconds=_SECONDS, memory=_MEMORY)
        except GraphcreditError as error:
            return _Answer(sql=sql, result=None, error=str(error))
    return _Answer(sql=sql, result=result, error=None)


def _show_answer(answer: _Answer) -> None:
    if answer.result is None:
        st.error("The query has no result:")
        show_code(answer.error or "")
        return
    result = answer.result
    for doubt in result.doubts:
        missing.doubtful(doubt)
    words = f"{counted(result.table.num_rows, 'row')} in {result.seconds:.2f} s."
    if result.is_cut:
        more = "more" if result.num_left_out is None else f"{result.num_left_out:,} more"
        words += f" There are {more}: filter, aggregate, or use `graphcredit sql`."
    st.caption(words)
    # A column type that Parquet lacks, the browser lacks too.
    table, _ = for_parquet(result.table.rename_columns(_distinct(result.table.column_names)))
    show_table(table)


def _distinct(names: list[str]) -> list[str]:
    """Return visible and unique column names: SQL allows two columns of the same name."""
    distinct: list[str] = []
    for name in map(visible, names):
        number, candidate = 2, name
        while candidate in distinct:
            number, candidate = number + 1, f"{name} ({number})"
        distinct.append(candidate)
    return distinct
