"""The Runs page: the iterations of each run as a table and as curves, the audit, the states."""

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import streamlit as st

from graphcredit.store.layout import Store
from graphcredit.store.log_text import named
from graphcredit.store.parquet.snapshot import Stamp, stamp
from graphcredit.viewer.pages.parts.curves import show_curves
from graphcredit.viewer.queries.iterations import iteration_facts
from graphcredit.viewer.widgets import missing, selection
from graphcredit.viewer.widgets.cache import viewed_store
from graphcredit.viewer.widgets.missing import per_run
from graphcredit.viewer.widgets.tables import choose_row
from graphcredit.viewer.widgets.text import show_code, show_text

_COLUMNS = (
    *("run", "iteration", "success_rate", "mean_return", "mean_length", "invalid_share"),
    *("degenerate_share", "num_groups", "num_trajectories", "num_credited", "num_incomplete"),
    "num_steps",
)
_EVERY = 5
"""Seconds between two looks for new iterations. A look without any only lists the files."""

_SIGNS = {"error": "🟥", "warning": "🟨", "info": "🟦"}


def show() -> None:
    """Show the page."""
    st.header("Runs")
    store = viewed_store()
    if not store.runs():
        missing.no_steps(store)
    # A fragment looks again by itself, so it also finds the first run of an empty store.
    st.fragment(_iterations, run_every=_EVERY)()
    if store.runs():
        _choose_audit(store)


def _iterations() -> None:
    """Show what there is by now."""
    store = viewed_store()
    facts = per_run(store, store.runs(), iteration_facts, "Some iterations")
    if facts is None:
        return
    st.caption("Tick a row to see its tasks; a click on a column's name sorts.")
    row = choose_row(facts, _COLUMNS, key="runs_table", title="Iterations")
    if row is not None:
        picked = facts.slice(row, 1).to_pylist()[0]
        selection.open_page("tasks", run=picked["run"], iteration=picked["iteration"])
    if facts.num_rows > 1:
        show_curves(store, facts)


def _choose_audit(store: Store) -> None:
    st.subheader("Audit")
    with st.container(horizontal=True):
        run = selection.choose_run(store)
        iteration = None if run is None else selection.choose_iteration(store, run)
    if run is not None and iteration is not None:
        _show_findings(store, run, iteration)
    if run is not None:
        _show_evidence(store, run)


def _show_findings(store: Store, run_id: str, iteration: int) -> None:
    """Show a button that runs `graphcredit audit` on an iteration, then what it found."""
    asked = (str(store.root), run_id, iteration)
    if st.button(
        "Audit this iteration", help="Check that groups are sound and that credit can be trusted."
    ):
        st.session_state["audited"] = asked
    if st.session_state.get("audited") != asked:
        return
    options = ("--iteration", str(iteration), "--json")
    report, complaint = _output_of("audit", run_id, options, stamp(store, run_id, iteration))
    if not report:
        st.error("The audit failed:")
        show_code(complaint)
        return
    findings = json.loads(report)["findings"]
    if not findings:
        st.success("The audit found nothing.")
    for finding in findings:
        _show_finding(finding)


def _show_evidence(store: Store, run_id: str) -> None:
    """Show a button that runs `graphcredit evidence` on a run, then what it printed."""
    asked = (str(store.root), run_id)
    if st.button(
        "Which states tell?",
        help="Whether a shared state tells how rollouts end that did not make it, by definition of "
        "a state.",
    ):
        st.session_state["evidence"] = asked
    if st.session_state.get("evidence") == asked:
        report, complaint = _output_of("evidence", run_id, (), stamp(store, run_id, None))
        show_code(report or complaint)


@st.cache_data(max_entries=50, show_spinner="Reading the steps …")
def _output_of(command: str, run_id: str, options: Sequence[str], files: Stamp) -> tuple[str, str]:
    """Return what a command says of a run, and its error messages.

    Another process computes it, so that a page stays quick, and anew when the files change.
    """
    # -P: a module in the user's working directory must not shadow ours.
    asked = [sys.executable, "-P", "-m", "graphcredit.cli.main", command, str(viewed_store().root)]
    words = [*asked, "--run", run_id, *options]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    # Exit code 1 means that some findings are errors.
    return (done.stdout if done.returncode in (0, 1) else ""), done.stderr


def _show_finding(finding: dict[str, Any]) -> None:
    # The names of checks are ours, but details quote the log.
    title = finding["check"].replace("_", " ")
    with st.expander(f"{_SIGNS[finding['severity']]} {finding['severity']}: {title}"):
        show_text(finding["message"])
        show_text(f"Remedy: {finding['remedy']}")
        for place in finding["places"]:
            where = {"run": place["run_id"], "iteration": place["iteration"]}
            if place["task_id"] is not None:
                selection.link("graph", named(place["task_id"]), **where, task=place["task_id"])
            show_text(place["detail"])
        more = finding["num_places"] - len(finding["places"])
        if more:
            st.caption(f"and {more:,} more")
