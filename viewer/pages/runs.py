"""The Runs page: a table of the iterations of each run, the audit, and which states tell."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import streamlit as st

from graphcredit.store.layout import Store
from graphcredit.store.parquet.snapshot import stamp
from graphcredit.viewer.pages.parts.evidence import show_evidence
from graphcredit.viewer.pages.parts.reports import report_of
from graphcredit.viewer.queries.iterations import action_entropies, iteration_facts
from graphcredit.viewer.widgets import missing, selection
from graphcredit.viewer.widgets.cache import viewed_store
from graphcredit.viewer.widgets.missing import per_run
from graphcredit.viewer.widgets.tables import choose_row
from graphcredit.viewer.widgets.text import one_line, show_code, show_text

_COLUMNS = (
    *("run", "iteration", "success_rate", "mean_return", "mean_length", "invalid_share"),
    *("degenerate_share", "action_entropy", "num_groups", "num_trajectories", "num_credited"),
    *("num_incomplete", "num_steps"),
)
_ENTROPY = "action_entropies"
"""Key of the entropies in the session."""
_SIGNS = {"error": "🟥", "warning": "🟨", "info": "🟦"}


def show() -> None:
    """Show the page."""
    st.header("Runs")
    store = viewed_store()
    runs = store.runs()
    if not runs:
        missing.no_steps(store)
        return
    facts = per_run(store, runs, iteration_facts, "Some iterations")
    if facts is not None:
        facts = _with_entropy(facts)
        st.caption("Select a row to see its tasks; a click on a column's name sorts.")
        row = choose_row(facts, _COLUMNS, key="runs_table", title="Iterations")
        if row is not None:
            picked = facts.slice(row, 1).to_pylist()[0]
            selection.open_page("tasks", run=picked["run"], iteration=picked["iteration"])
        selection.link("over_time", "The same as curves, with the metrics of training")
    _choose_audit(store)
    _count_entropy(store, runs)


def _with_entropy(facts: pa.Table) -> pa.Table:
    """Return the facts with the entropies that this session has computed, or null."""
    known = st.session_state.get(_ENTROPY)
    if known is None:
        return facts.append_column("action_entropy", pa.nulls(facts.num_rows, pa.float64()))
    keys = ["run", "iteration"]
    return facts.join(known, keys).sort_by([(name, "ascending") for name in keys])


def _count_entropy(store: Store, runs: Sequence[str]) -> None:
    """Compute the entropies last, because they take longest; then rerun the page."""
    counted = per_run(store, runs, action_entropies, None)
    if counted is not None and counted != st.session_state.get(_ENTROPY):
        st.session_state[_ENTROPY] = counted
        st.rerun()


def _choose_audit(store: Store) -> None:
    st.subheader("Audit")
    with st.container(horizontal=True):
        run = selection.choose_run(store)
        iteration = None if run is None else selection.choose_iteration(store, run)
    if run is not None and iteration is not None:
        _show_findings(store, run, iteration)
    if run is not None:
        show_evidence(store, run)


def _show_findings(store: Store, run_id: str, iteration: int) -> None:
    """Show a button that runs `graphcredit audit` on an iteration, then what it found."""
    asked = (str(store.root), run_id, iteration)
    if st.button(
        "Audit this iteration", help="Check that groups are sound and that credit can be trusted."
    ):
        st.session_state["audited"] = asked
    if st.session_state.get("audited") != asked:
        return
    report, complaint = report_of("audit", *asked, stamp(store, run_id, iteration))
    if report is None:
        st.error("The audit failed:")
        show_code(complaint)
    elif not report["findings"]:
        st.success("The audit found nothing.")
    else:
        for finding in report["findings"]:
            _show_finding(finding)


def _show_finding(finding: dict[str, Any]) -> None:
    # The names of checks are ours, but details quote the log.
    title = finding["check"].replace("_", " ")
    with st.expander(f"{_SIGNS[finding['severity']]} {finding['severity']}: {title}"):
        show_text(finding["message"])
        show_text(f"Remedy: {finding['remedy']}")
        for place in finding["places"]:
            where = {"run": place["run_id"], "iteration": place["iteration"]}
            if place["task_id"] is not None:
                selection.link("graph", one_line(place["task_id"]), **where, task=place["task_id"])
            show_text(place["detail"])
        more = finding["num_places"] - len(finding["places"])
        if more:
            st.caption(f"and {more:,} more")
