"""A button that runs `graphcredit audit` on an iteration, and its findings."""

import json
import subprocess
import sys
from typing import Any

import streamlit as st

from graphcredit.store.layout import Store
from graphcredit.store.parquet.snapshot import Stamp, stamp
from graphcredit.viewer.widgets import selection
from graphcredit.viewer.widgets.text import one_line, show_code, show_text

_SIGNS = {"error": "🟥", "warning": "🟨", "info": "🟦"}


def show_findings(store: Store, run_id: str, iteration: int) -> None:
    """Show a button that audits an iteration; then show the findings, with links to tasks."""
    asked = (str(store.root), run_id, iteration)
    if st.button(
        "Audit this iteration", help="Check that groups are sound and that credit can be trusted."
    ):
        st.session_state["audited"] = asked
    if st.session_state.get("audited") != asked:
        return
    report, complaint = _audit(*asked, stamp(store, run_id, iteration))
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


@st.cache_data(max_entries=50, show_spinner="Auditing …")
def _audit(
    root: str, run_id: str, iteration: int, files: Stamp
) -> tuple[dict[str, Any] | None, str]:
    """Return the report, or None and the error message; a separate process reads the steps."""
    # -P: a module in the user's working directory must not shadow ours.
    command = [sys.executable, "-P", "-m", "graphcredit.cli.main", "audit", root, "--json"]
    scope = ["--run", run_id, "--iteration", str(iteration)]
    done = subprocess.run([*command, *scope], capture_output=True, text=True, check=False)
    # Exit code 1 means that some findings are errors.
    if done.returncode in (0, 1) and done.stdout:
        return json.loads(done.stdout), ""
    return None, done.stderr
