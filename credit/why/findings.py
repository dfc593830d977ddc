"""What failures do that wins do not: the patterns whose rollouts end worse than others of a task.

All patterns of `patterns.py` are compared within tasks. The one that tells most is a finding if it
is beyond chance among all that were looked at; then so is the next one, unless those before it
explain it, as they explain their consequences and special cases. What was done or left out on the
way comes before how rollouts ended. Where few rollouts have others of their task that ended
otherwise, and nothing is a finding within tasks, rollouts of all tasks are compared, those of each
run and iteration by themselves: another policy does other things, and ends otherwise.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from graphcredit.credit.steps.arrays import Bools, Floats, Ints
from graphcredit.credit.why.distinct import TWINS, distinct
from graphcredit.credit.why.log import Log, ShownStep, read_log
from graphcredit.credit.why.patterns import LEAST, Pattern, marks_of, patterns_of
from graphcredit.credit.why.within import (
    LEVEL,
    Difference,
    centred,
    difference,
    false_discovery,
    p_values,
)
from graphcredit.store.layout import AnyStore, open_store
from graphcredit.store.plural import counted

_AT_ONCE = 256
"""Patterns that are compared at once, which bounds the memory."""
_CANDIDATES = 200
"""Patterns that are compared again given those found: those that tell most by themselves."""
_FEWEST_TASKS = 8
"""Tasks that can be halved."""
_HOLDS = 1.645
"""z from which a half of the tasks tells what all tell: .05 on one side."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding(ShownStep):
    """Something that went with worse ends, and a rollout that shows it."""

    kind: Literal["did", "left out", "ended with"]
    words: str
    """What those did that ended worse, as Markdown: `never called `x` after the last `y``."""
    also: str
    """Another thing that the same rollouts did, or never did; may be empty."""
    among: str
    """Which rollouts are compared, if not all: `called `y``."""
    num_with: int
    """Rollouts that did it, of those that are compared."""
    num_without: int
    """The others of them."""
    mean_with: float
    """How they ended: the share of wins, or the mean return if `is_graded`."""
    mean_without: float
    """How the others ended."""
    num_tasks: int
    """Tasks in which rollouts that did it are compared with others."""
    effect: float
    """Mean difference of the ends within tasks; below 0."""
    error: float
    """Its standard error."""
    q: float
    """The false-discovery rate among all patterns, by itself or given the findings before it."""
    holds: bool | None
    """Whether each half of the tasks tells it by itself; None if there are too few tasks."""
    is_graded: bool
    """Whether returns are compared, and not wins."""
    is_across_tasks: bool
    """Whether rollouts of different tasks are compared: a harder task may be the cause."""
    is_by_run: bool
    """Whether they are compared in each of several runs, or iterations, by itself."""
    shown_by: str
    """How its step shows it: `step`; of what was left out, `which ended with step` or so."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Findings:
    """What was found over all rollouts."""

    findings: tuple[Finding, ...]
    nearest: Finding | None
    """The pattern that tells most, which may be chance: where there is no finding."""
    num_patterns: int
    """Patterns that were looked at."""
    num_rollouts: int
    num_won: int
    num_tasks: int
    num_groups: int
    """Tasks, a task of several runs or iterations once for each."""
    num_mixed: int
    """Groups whose rollouts ended differently: they alone tell a difference within tasks."""
    num_in_mixed: int
    """Rollouts of those groups."""
    num_never_won: int
    """Groups of which no rollout won."""
    is_graded: bool
    is_across_tasks: bool
    reason: str
    """Why nothing can be compared, and what to do; empty if it can."""


def findings(
    store: AnyStore, *, run_id: str | None = None, iteration: int | None = None, most: int = 5
) -> Findings:
    """Return what goes with worse ends in a store, which needs no credit.

    Args:
        store: A store, or its path.
        run_id: Only this run.
        iteration: Only this iteration.
        most: Most findings.

    Raises:
        SchemaError: A file cannot be read.
    """
    return findings_of(read_log(open_store(store), run_id=run_id, iteration=iteration), most=most)


def findings_of(log: Log, *, most: int = 5) -> Findings:
    """Return what goes with worse ends in a log."""
    reason = _reason(log)
    lowest, highest = _ends_of_tasks(log)
    num_mixed = int((lowest < highest).sum())
    over_all = _runs_of(log)
    can_cross = over_all.max(initial=0) + 1 < len(lowest)
    is_across = can_cross and num_mixed < 2 * LEAST
    group = over_all if is_across else log.group
    compared = None if reason else _Compared(log, group, is_across)
    found = tuple(compared.found(most)) if compared else ()
    num_in_mixed = int((lowest < highest)[log.group].sum())
    if compared and can_cross and not (found or is_across) and 2 * num_in_mixed < log.num_rollouts:
        other = _Compared(log, over_all, True)
        if found := tuple(other.found(most)):
            compared, is_across = other, True
    return Findings(
        findings=found,
        nearest=compared.nearest() if compared and not found else None,
        num_patterns=int(compared.is_tested.sum()) if compared else 0,
        num_rollouts=log.num_rollouts,
        num_won=int(log.won.sum()),
        num_tasks=log.num_tasks(log.group),
        num_groups=len(lowest),
        num_mixed=num_mixed,
        num_in_mixed=num_in_mixed,
        num_never_won=0 if log.is_graded else int((highest == 0).sum()),
        is_graded=log.is_graded,
        is_across_tasks=is_across,
        reason=reason,
    )


def _runs_of(log: Log) -> Ints:
    """Return [num_rollouts] the run and iteration of each; one, if most have one of their own."""
    names = log.names.select(["run_id", "iteration"]).to_pylist()
    is_next = [one != other for one, other in pairwise(names)]
    runs = np.concatenate([np.zeros(min(1, len(names)), int), np.cumsum(is_next, dtype=int)])
    return runs if 2 * sum(is_next) < len(names) else np.zeros_like(runs)


def _reason(log: Log) -> str:
    """Return why nothing can be compared, and the remedy."""
    number, won = log.num_rollouts, int(log.won.sum())
    if number == 0:
        return "no rollout is complete: `graphcredit check STORE` says what they lack"
    if np.ptp(log.outcome) > 0:
        least = number if log.is_graded else min(won, number - won)
        if least >= LEAST:
            return ""
        side = "" if log.is_graded else " that won" if won < number - won else " that failed"
        few = f"{counted(least, 'rollout')}{side}"
        return f"{few}: too few to say what they share; sample more, {LEAST} at least"
    remedy = "sample more, or say with --success what counts"
    if number == 1:
        return f"there is one rollout, and nothing to compare it with: {remedy}"
    ended = "have one return" if log.is_graded else "won" if won else "failed"
    return f"all {number} rollouts {ended}: nothing to compare; {remedy}"


def _ends_of_tasks(log: Log) -> tuple[Floats, Floats]:
    """Return the lowest and the highest outcome of each task."""
    if not log.num_rollouts:
        return np.empty(0), np.empty(0)
    starts = np.flatnonzero(np.diff(log.group, prepend=-1))
    lowest = np.minimum.reduceat(log.outcome, starts)
    return lowest, np.maximum.reduceat(log.outcome, starts)


class _Compared:
    """All patterns of a log, compared."""

    def __init__(self, log: Log, group: Ints, is_across: bool) -> None:
        self.log, self.group, self.is_across = log, group, is_across
        self.patterns = patterns_of(log)
        parts = [
            difference(*marks_of(log, self.patterns[at : at + _AT_ONCE]), log.outcome, group)
            for at in range(0, len(self.patterns), _AT_ONCE)
        ]
        self.effect = np.concatenate([np.zeros(0), *(each.effect for each in parts)])
        self.z = np.concatenate([np.zeros(0), *(each.z for each in parts)])
        least = np.concatenate([np.zeros(0), *(each.num_least for each in parts)])
        only_done = np.array([each.is_act for each in self.patterns], bool)
        self.is_tested = (least >= LEAST) & ~(only_done & (self.effect > 0))
        self.q = np.ones(len(self.z))
        self.q[self.is_tested] = false_discovery(p_values(self.z[self.is_tested]))

    def found(self, most: int) -> Iterator[Finding]:
        """Yield the findings, what was done or left out first."""
        places = np.argsort(-np.abs(self.z) * self.is_tested, kind="stable")[:_CANDIDATES]
        places = places[self.is_tested[places]]
        if not (self.q[places] <= LEVEL).any():
            return
        has, could = marks_of(self.log, [self.patterns[place] for place in places])
        marks = centred(has.astype(float), could, self.group)
        outcome = centred(self.log.outcome[None], None, self.group)[0]
        told = np.abs(marks @ outcome) / np.sqrt((marks**2).sum(1) * (outcome**2).sum())
        is_outcome = (self.effect[places] > 0) & (told >= TWINS)
        is_end = is_outcome | np.array([self._is_end(place) for place in places])
        chosen = distinct(
            marks,
            outcome,
            self.group,
            z=self.z[places],
            q=self.q[places],
            level=LEVEL,
            num_tests=int(self.is_tested.sum()),
            detail=np.array([self.patterns[place].detail for place in places]),
            rounds=(~is_end, is_end),
            correction=0.0 if self.log.is_graded else 0.5,
            most=most,
        )
        for at, q in chosen.items():
            yield self._finding(int(places[at]), has[at], could[at], q, is_end=bool(is_end[at]))

    def nearest(self) -> Finding | None:
        """Return the pattern that tells most, though chance may do as much."""
        if not self.is_tested.any():
            return None
        place = int(np.argmax(np.abs(self.z) * self.is_tested))
        has, could = marks_of(self.log, [self.patterns[place]])
        q, is_end = float(self.q[place]), self._is_end(place)
        return self._finding(place, has[0], could[0], q, is_end=is_end)

    def _is_end(self, place: int) -> bool:
        """Return whether a pattern is how rollouts ended, or what those that won ended with."""
        pattern = self.patterns[place]
        steps = pattern.steps
        is_last = steps == self.log.last[self.log.rollout[steps]]
        return pattern.part == "end" or bool(self.effect[place] > 0 and is_last.mean() > 0.5)

    def _finding(self, place: int, has: Bools, could: Bools, q: float, *, is_end: bool) -> Finding:
        pattern = self.patterns[place]
        told = difference(has[None], could[None], self.log.outcome, self.group)
        effect = float(told.effect[0])
        is_left = effect > 0
        does = could & ~has if is_left else has
        others = could & ~does
        if is_left and pattern.instead is not None:
            pattern, is_left = pattern.instead, False
        outcome = self.log.outcome
        return Finding(
            kind="ended with" if is_end else "left out" if is_left else "did",
            words=pattern.left if is_left else pattern.done,
            also=f"never {pattern.also}" if is_left and pattern.also else pattern.also,
            among=pattern.among,
            num_with=int(does.sum()),
            num_without=int(others.sum()),
            mean_with=float(outcome[does].mean()),
            mean_without=float(outcome[others].mean()),
            num_tasks=self.log.num_tasks(
                np.intersect1d(self.log.group[does], self.log.group[others])
            ),
            effect=-abs(effect),
            error=float(told.error[0]),
            q=q,
            holds=self._holds(does, could),
            is_graded=self.log.is_graded,
            is_across_tasks=self.is_across,
            is_by_run=self.is_across and bool(self.group.any()),
            shown_by=f"{pattern.chance} step" if is_left else "step",
            **self.log.shown(self._example(pattern, does, is_left)),
        )

    def _example(self, pattern: Pattern, does: Bools, is_left: bool) -> int:
        """Return the row of a step of the rollout that ended worst for its task."""
        outcome = centred(self.log.outcome[None], None, self.group)[0]
        shown = int(np.argmin(np.where(does, outcome, np.inf)))
        rows: Sequence[int] | Ints = self.log.last if is_left else pattern.steps
        if is_left and pattern.missing is not None:
            rows = pattern.missing
        return int(next(row for row in rows if self.log.rollout[row] == shown))

    def _holds(self, does: Bools, could: Bools) -> bool | None:
        """Return whether each half of the tasks tells it."""
        tasks = self.log.group
        told = np.intersect1d(tasks[does], tasks[could & ~does])
        tasks_told = np.unique(tasks[does]) if self.is_across else told
        if len(tasks_told) < _FEWEST_TASKS:
            return None
        halves: list[Difference] = []
        for half in (tasks_told[::2], tasks_told[1::2]):
            here = ~np.isin(tasks, np.setdiff1d(tasks_told, half))
            halves.append(
                difference(does[None], (could & here)[None], self.log.outcome, self.group)
            )
        return all(float(half.z[0]) <= -_HOLDS for half in halves)
