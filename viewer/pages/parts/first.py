"""What to read first, on the Tasks page: what goes with failures, decisions that mattered."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from graphcredit.credit.why.decisions import ComparedDecision, decisions
from graphcredit.credit.why.finding_words import finding_sentence
from graphcredit.credit.why.findings import Finding, Findings, findings
from graphcredit.credit.why.picture import why_picture
from graphcredit.credit.why.sentences import sentence
from graphcredit.store.layout import Store
from graphcredit.store.log_text import named
from graphcredit.store.plural import counted
from graphcredit.viewer.graph.state_names import action_words
from graphcredit.viewer.widgets import selection
from graphcredit.viewer.widgets.cache import ask, viewed_store
from graphcredit.viewer.widgets.containers import opened
from graphcredit.viewer.widgets.text import show_said

_SHOWN = 5
_AT_ONCE = 200_000
"""Steps up to which they are looked for without being asked to."""


def show_first(run: str, iteration: int, facts: pa.Table, *, has_reach: bool) -> None:
    """Show what goes with failures over all tasks, then the decisions that mattered, by `reach`.

    Of very many steps, nothing is shown before it is asked for.
    """
    title = "What to read first"
    if (pc.sum(facts["num_steps"]).as_py() or 0) > _AT_ONCE:
        inside = opened(title, key="first_decisions")
        if inside is None:
            return
    else:
        st.subheader(title)
        inside = st.container()
    here: dict[str, Any] = {"run_id": run, "iteration": iteration}
    with inside:
        _findings(ask(findings, **here))
        if has_reach:
            shown = ask(decisions, **here, most=_SHOWN)
            _decisions(shown)
            if shown:
                _offer_picture(viewed_store(), here)


def _offer_picture(store: Store, here: Mapping[str, Any]) -> None:
    """Offer one decision as a file; it is drawn when it is asked for."""
    st.download_button(
        "Picture of one decision",
        data=lambda: why_picture(store, **here),
        file_name="why.svg",
        mime="image/svg+xml",
        on_click="ignore",
        help="The surest one as an SVG file: a strip for each rollout, the winners' way, and the "
        "losers who left it.",
    )


def _findings(found: Findings) -> None:
    """Show each finding with a link to the rollout that shows it."""
    if found.reason:
        st.info(f"{found.reason[0].upper()}{found.reason[1:]}.")
        return
    if not found.findings:
        st.caption(
            f"Nothing that rollouts did, or left out, goes with worse ends beyond chance: "
            f"{counted(found.num_patterns, 'pattern')} were compared."
        )
    for each in found.findings:
        with st.container(border=True):
            show_said(finding_sentence(each))
            _link(each)


def _decisions(shown: Sequence[ComparedDecision]) -> None:
    """Show single decisions in words, each with a link to its step."""
    for each in shown:
        with st.container(border=True):
            _link(each, estimator="reach")
            show_said(sentence(each))
    if not shown:
        st.caption(
            "In no group did several rollouts visit a state, do different things there, and end "
            "differently."
        )


def _link(step: Finding | ComparedDecision, **changes: Any) -> None:
    """Show a link to a step in its rollout."""
    selection.link(
        "trajectory",
        f"{named(step.task_id)} · step {step.step_index}: {action_words(step.action, 34)}",
        task=step.task_id,
        trajectory=step.trajectory_id,
        step=step.step_index,
        **changes,
    )


def in_numbers(facts: pa.Table) -> str:
    """Return the iteration in a sentence."""
    rows = facts.select(["num_trajectories", "success_rate", "is_degenerate"]).to_pylist()
    num_rollouts = sum(row["num_trajectories"] for row in rows)
    rates = [(row["success_rate"], row["num_trajectories"]) for row in rows]
    judged = [(rate, size) for rate, size in rates if rate is not None]
    num_alike = sum(bool(row["is_degenerate"]) for row in rows)
    words = [f"{counted(num_rollouts, 'complete rollout')} of {counted(len(rows), 'task')}"]
    if judged:
        num_won = sum(rate * size for rate, size in judged)
        words.append(f"{num_won / sum(size for _, size in judged):.0%} succeeded")
    if num_alike:
        words.append(f"{counted(num_alike, 'task')} in which all have one return")
    return " · ".join(words)
