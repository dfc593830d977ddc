"""Choices that recur over tasks: one kind of action against all others, from the same states.

One decision of a task has few rollouts. The same choice in many states of many tasks has more: in
each state where some rollouts made it and others of their task did not, how did both end? A rollout
may be in several such states, so its outcome counts as one.
"""

from collections.abc import Set
from dataclasses import dataclass

import numpy as np

from graphcredit.credit.steps.arrays import Floats, Ints
from graphcredit.credit.why.distinct import distinct
from graphcredit.credit.why.kinds import ActionKind
from graphcredit.credit.why.log import Log, ShownStep
from graphcredit.credit.why.patterns import LEAST, rows_of_kinds
from graphcredit.credit.why.within import LEVEL, centred, false_discovery, p_values

_FEWEST_TASKS = 3
_MOST_KINDS = 400
"""Kinds that are looked at: those of most rollouts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PooledDecision(ShownStep):
    """A choice that recurs, shown by a rollout that chose what ended worse."""

    words: str
    """What was chosen, as Markdown: `called `x``."""
    num_took: int
    """Times that a rollout chose it in a state where another one of its task did not."""
    took: float
    """How those ended: the share of wins, or the mean return if `is_graded`."""
    num_others: int
    """Times that a rollout chose something else there."""
    others: float
    """How those ended."""
    num_states: int
    num_tasks: int
    effect: float
    """Mean difference of the ends within states."""
    error: float
    """Its standard error, by rollouts."""
    q: float
    """The false-discovery rate, among all choices that were looked at."""
    is_graded: bool
    """Whether returns are compared, and not wins."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Choice:
    """A kind of action in the states where only some chose it."""

    kind: ActionKind
    rows: Ints
    """Steps of the kind."""
    visit: Ints
    """Visits of those states."""
    took: Floats
    """1 for those that chose it, less the share of them in the state."""
    exposure: Floats
    """[num_rollouts]: the sum of `took` over its visits."""
    effect: float
    error: float
    z: float


class _Visits:
    """Who was in which state, each rollout once."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.num_states = int(log.state.max(initial=-1)) + 1
        key = log.rollout * self.num_states + log.state
        self.row_key = np.where(log.state >= 0, key, -1)
        self.key = np.unique(self.row_key[self.row_key >= 0])
        self.rollout, self.state = np.divmod(self.key, max(self.num_states, 1))
        self.size = np.bincount(self.state, minlength=self.num_states)
        ends = log.outcome[self.rollout]
        mean = np.bincount(self.state, ends, self.num_states) / np.maximum(self.size, 1)
        self.outcome = ends - mean[self.state]
        dealt = centred(log.outcome[None], None, log.group)[0] ** 2
        number = np.bincount(log.group)
        self.spread = (np.bincount(log.group, dealt) / np.maximum(number - 1, 1))[log.group]

    def choice(self, kind: ActionKind, rows: Ints) -> _Choice | None:
        """Return a kind of action as a choice; None if too few had it."""
        log = self.log
        keys = np.unique(self.row_key[rows])
        at = np.searchsorted(self.key, keys[keys >= 0])
        number = np.bincount(self.state[at], minlength=self.num_states)
        visit = np.flatnonzero((number > 0)[self.state] & (number < self.size)[self.state])
        did = np.isin(visit, at)
        rollout, state = self.rollout[visit], self.state[visit]
        sides = [len(np.unique(rollout[side])) for side in (did, ~did)]
        if min(sides) < LEAST or len(np.unique(log.group[rollout])) < _FEWEST_TASKS:
            return None
        took = did - (number / np.maximum(self.size, 1))[state]
        gain, weight = took * self.outcome[visit], float((took**2).sum())
        exposure = np.bincount(rollout, took, log.num_rollouts).astype(float)
        each = np.bincount(rollout, gain, log.num_rollouts)
        error = float(np.sqrt(max((exposure**2 * self.spread).sum(), (each**2).sum())))
        total = float(gain.sum())
        size = max(abs(total) - (0.0 if log.is_graded else 0.5), 0.0)
        if error == 0 or total == 0:
            return None
        return _Choice(
            kind=kind,
            rows=rows,
            visit=visit,
            took=took,
            exposure=exposure,
            effect=total / weight,
            error=error / weight,
            z=float(np.sign(total)) * size / error,
        )


def pooled_decisions(log: Log, *, most: int = 3) -> dict[PooledDecision, Set[str]]:
    """Return the choices beyond chance, those first that tell most, each with its actions."""
    if not log.num_rollouts or np.ptp(log.outcome) == 0:
        return {}
    visits = _Visits(log)
    kinds = list(rows_of_kinds(log).items())[:_MOST_KINDS]
    choices = [choice for kind, rows in kinds if (choice := visits.choice(kind, rows))]
    if not choices:
        return {}
    z = np.array([choice.z for choice in choices])
    q = false_discovery(p_values(z))
    sure = np.flatnonzero((q <= LEVEL) & (np.abs(z) > 2))
    if not len(sure):
        return {}
    marks = np.stack([choices[place].exposure for place in sure])
    chosen = distinct(
        marks,
        centred(log.outcome[None], None, log.group)[0],
        log.group,
        z=z[sure],
        q=q[sure],
        level=LEVEL,
        num_tests=len(z),
        detail=np.array([choices[place].kind.detail for place in sure]),
        rounds=(np.ones(len(sure), bool),),
        correction=0.0 if log.is_graded else 0.5,
        most=most,
    )
    shown = {
        _shown(visits, choices[sure[at]], q): choices[sure[at]].rows for at, q in chosen.items()
    }
    return {
        each: {log.actions[code] for code in np.unique(log.action[rows])}
        for each, rows in shown.items()
        if (each.took - each.others) * each.effect > 0
    }


def _shown(visits: _Visits, choice: _Choice, q: float) -> PooledDecision:
    log = visits.log
    rollout, did = visits.rollout[choice.visit], choice.took > 0
    ends = log.outcome[rollout]
    worse = did if choice.effect < 0 else ~did
    place = choice.visit[np.argmin(np.where(worse, visits.outcome[choice.visit], np.inf))]
    there = np.flatnonzero(visits.row_key == visits.key[place])
    row = int(np.intersect1d(there, choice.rows)[0] if choice.effect < 0 else there[0])
    return PooledDecision(
        words=choice.kind.words,
        num_took=int(did.sum()),
        took=float(ends[did].mean()),
        num_others=int((~did).sum()),
        others=float(ends[~did].mean()),
        num_states=len(np.unique(visits.state[choice.visit])),
        num_tasks=log.num_tasks(log.group[rollout]),
        effect=choice.effect,
        error=choice.error,
        q=q,
        is_graded=log.is_graded,
        **log.shown(row),
    )
