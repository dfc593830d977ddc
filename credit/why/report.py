"""All that `why` says of a store: what failures do, choices that recur, and single decisions."""

from dataclasses import dataclass

import numpy as np

from graphcredit.credit.why.decisions import Ranked, ranked_in
from graphcredit.credit.why.findings import Findings, findings_of
from graphcredit.credit.why.log import Log, log_in
from graphcredit.credit.why.pooled import PooledDecision, pooled_decisions
from graphcredit.store.sql.catalog import Connection

_SURE, _AT_LEAST = 10, 3
"""Decisions that are shown unless another number is asked for: so many that are beyond chance, and
at least so many."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WhyReport:
    """What rollouts lost by."""

    findings: Findings
    pooled: tuple[PooledDecision, ...]
    """Choices that recur over tasks."""
    ranked: Ranked
    reason: str
    """Why there is nothing to compare, or no decisions, and what to do; empty if there are."""


def why_in(views: Connection, *, most: int | None = None) -> WhyReport:
    """Return what the rollouts of a store lost by.

    Args:
        views: Of a store with credit by `reach`.
        most: Most single decisions; by default those that are beyond chance, up to 10, and at least
            3 others where fewer are.
    """
    log = log_in(views)
    pooled = pooled_decisions(log)
    choices = [(actions, each.effect) for each, actions in pooled.items()]
    single = ranked_in(views, most=most or _SURE, choices=choices)
    found = findings_of(log)
    if most is None:
        single = single.first(max(single.num_sure, _AT_LEAST))
    return WhyReport(
        findings=found,
        pooled=tuple(pooled),
        ranked=single,
        reason=found.reason or _without_decisions(log, single),
    )


def _without_decisions(log: Log, single: Ranked) -> str:
    """Return why no decision can be compared, and the remedy; empty if some can."""
    if single.num_compared:
        return ""
    starts = np.flatnonzero(np.diff(log.group, prepend=-1))
    if np.diff(starts, append=log.num_rollouts).max() == 1:
        return (
            f"each of the {log.num_rollouts} tasks has one rollout, so no decision can be compared "
            "with what others did: sample several of each task (if they are there, --group names "
            "the field that they share)"
        )
    lowest, highest = (f.reduceat(log.outcome, starts) for f in (np.minimum, np.maximum))
    if bool((lowest == highest).all()):
        return (
            "in each task all rollouts ended alike, so no decision can be compared: sample more of "
            "each task"
        )
    return (
        "no decision can be compared: in no state did rollouts of one task do different things and "
        "end differently. Other states may let them meet: `graphcredit import LOG --try 40`"
    )
