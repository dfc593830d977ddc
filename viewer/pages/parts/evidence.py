"""Which definition of a state tells how the rollouts of a run end, on the Runs page."""

from typing import Any

import pyarrow as pa
import streamlit as st

from graphcredit.store.layout import Store
from graphcredit.store.parquet.snapshot import stamp
from graphcredit.viewer.pages.parts.reports import report_of
from graphcredit.viewer.widgets.text import show_code, show_table, show_text


def show_evidence(store: Store, run_id: str) -> None:
    """Show a button that runs `graphcredit evidence` on a run, then its table."""
    asked = (str(store.root), run_id)
    if st.button(
        "Which states tell?",
        help="Whether a shared state tells how rollouts end that did not make it, by definition of "
        "a state.",
    ):
        st.session_state["evidence"] = asked
    if st.session_state.get("evidence") != asked:
        return
    report, complaint = report_of("evidence", *asked, None, stamp(store, run_id, None))
    if report is None:
        st.error("The states could not be judged:")
        show_code(complaint)
    elif not report["num_mixed"]:
        st.info("In each group all rollouts ended alike: there is nothing to tell.")
    else:
        show_table(_table(report["definitions"]))
        show_text(_conclusion(report))


def _table(definitions: dict[str, Any]) -> pa.Table:
    figures = ("evidence", "beyond_chance")
    return pa.table(
        {
            "states": list(definitions),
            "company": [f"{each['company']:.0%}" for each in definitions.values()],
        }
        | {
            name.replace("_", " "): [_shown(each[name]) for each in definitions.values()]
            for name in figures
        }
    )


def _shown(estimate: dict[str, float | None]) -> str:
    error = "" if estimate["error"] is None else f" ± {2 * estimate['error']:.2f}"
    return f"{estimate['value']:.2f}{error}"


def _conclusion(report: dict[str, Any]) -> str:
    groups = f"{report['num_mixed']:,} groups with different outcomes; ± are two standard errors. "
    if report["best"] is not None:
        return f"{groups}Most evidence, and beyond chance: {report['best']}"
    others = report["others_beyond_chance"]
    said = (
        f"Beyond chance, by luck perhaps: {', '.join(others)}"
        if others
        else "None is beyond chance"
    )
    return f"{groups}{said}. What this run surely supports is credit for whole outcomes."
