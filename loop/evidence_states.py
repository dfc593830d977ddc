"""Which definitions of a state are judged: the rules of `collector` by the evidence of `credit`."""

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa

from graphcredit.collector.states.effects import Effects
from graphcredit.collector.states.restate import (
    VisitedRows,
    effects_in,
    effects_of,
    restated,
    visited_rows,
)
from graphcredit.collector.states.rows import COLUMNS
from graphcredit.collector.states.table import is_tool_rule, learned
from graphcredit.credit.evidence.definition import Definition
from graphcredit.credit.evidence.report import EvidenceReport
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.store.files.parse import parse_object
from graphcredit.store.layout import LOGGED_STATE, Store, states_name, stored_states

LAST = "last"
"""The default of `import --state`."""

RULES = ("calls", "effects", "effects+last-tool", "results", "facts", "worktree", LAST)
"""Rules for agents that use tools, which are judged where the store has no such states yet."""

_LAST_NAMES = (f"--set {LAST}", f"--state {LAST}")

_DEFAULT = "effects+last-tool"
"""Taken where the log does not tell: of the fixed rules, it was worth most where the truth is known
(docs/research/evidence.md). It unites nothing that differs in an effect."""


def definitions_of(store: Store, run_id: str | None) -> list[Definition]:
    """Return what is judged: the states that a store has, by each merge, and rules for tools."""
    names = stored_states(store)
    stored = [
        Definition(
            name=_name(state, merge),
            state=state,
            merge=MergeSettings(merge=merge),
            is_default=(state, merge) == (states_name(_DEFAULT), "exact"),
        )
        for state in (LOGGED_STATE, *names)
        for merge in ("exact", "segments")
    ]
    return [*stored, *_by_rule(effects_in(store, run_id=run_id), "--set", names)]


def definitions_by(rule: str, iterations: Sequence[pa.Table]) -> list[Definition]:
    """Return what is judged before a log is imported: its states by a rule, and rules for tools."""
    merged = MergeSettings(merge="segments")
    return [
        Definition(name=f"--state {rule}"),
        Definition(name=f"--state {rule}, then credit --merge segments", merge=merged),
        *_by_rule(effects_of(iterations), "--state", [states_name(rule)] * is_tool_rule(rule)),
    ]


def _by_rule(effects: Effects, option: str, names: Sequence[str]) -> list[Definition]:
    """Return rules for tools that are not there under some names yet."""
    return [
        Definition(
            name=f"{option} {rule}",
            columns=COLUMNS,
            read=visited_rows,
            restate=_last_seen
            if rule == LAST
            else partial(restated, rule=learned(rule, effects.tools)),
            is_default=rule == _DEFAULT and bool(effects.changing + effects.unchanging),
            omit_alike=rule == LAST,
        )
        for rule in RULES
        if states_name(rule) not in names
    ]


def _last_seen(steps: pa.Table, *, read: Sequence[VisitedRows]) -> pa.Table:
    """Return steps with the states of `import --state last`: its own, where none is of messages."""
    extras = (parse_object(extra.as_py()) for extra in steps["extra"])
    has_messages = any(isinstance(extra.get("message"), dict) for extra in extras)
    return restated(steps, LAST, read=read) if has_messages else steps


def default_in(report: EvidenceReport, logged: str) -> str:
    """Return the name of the default states, where the logged ones are called `logged`."""
    return next((name for name in report.knowledge if name in _LAST_NAMES), logged)


def against_default(report: EvidenceReport, used: str, logged: str) -> Iterator[str]:
    """Yield, of states that were chosen, what they tell and what the default would."""
    default = default_in(report, logged)
    if default != used:
        yield report.against(default, used)


def _name(state: str, merge: str) -> str:
    by = "" if merge == "exact" else f" --merge {merge}"
    return ("as logged" if state == LOGGED_STATE else f"--state {state}") + by
