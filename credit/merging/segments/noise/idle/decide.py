"""Outcomes decide which claims hold (`counts/outcomes.py`).

Without all that is claimed, does the same action lead from the same text to the same outcome,
whatever the value is? The values that matter most are put back one after the other, for then others
may no longer seem to matter. If those that are left matter together, all stay. Where too little is
compared, the value stays, and the states that differ in it alone are counted as undecided.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphcredit.credit.merging.segments.counts.outcomes import Dependence, dependence_on
from graphcredit.credit.merging.segments.counts.tally import SeenValues, values_at
from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.noise.idle.claims import Claims, Reduction, numbered
from graphcredit.credit.merging.segments.noise.idle.rules import IdleRules
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.steps.arrays import Bools, Ints, factorise_pairs

_WORST = 0.5
"""Of the values that matter, those are put back at once that matter so much as the worst."""


def decide(
    parsed: Parsed,
    visits: Visits,
    kinds: Sequence[Claims[Any]],
    rest_of: Callable[[Parsed], Ints],
) -> IdleRules:
    """Return what may be left out by outcomes, which are asked about claims of some kinds together.

    Args:
        parsed: The texts of the nodes.
        visits: All visits of these nodes.
        kinds: What each kind leaves out is applied to what those before have left.
        rest_of: Returns [num_texts] codes, equal for texts that are one without noise.
    """
    stop = np.cumsum([len(own.things) for own in kinds])
    of_segment = numbered(kinds)
    left = np.ones(int(stop[-1]), np.bool_)
    holds = np.zeros_like(left)
    seen = values_at(parsed, visits, of_segment, each_once=True)

    def reductions(which: Bools) -> tuple[Reduction, ...]:
        parts = np.split(which, stop[:-1])
        pairs = zip(kinds, parts, strict=True)
        return tuple(own.reduction(part) for own, part in pairs if part.any())

    while left.any():
        without = IdleRules(reductions=reductions(left))
        rest = rest_of(parsed.map(without.apply))[visits.node]
        found = dependence_on(seen.key, len(left), seen.visit, seen.value, rest, visits)
        if not (found.matters & left).any():
            if not _matter_together(seen, left, rest, visits):
                holds = found.is_idle & left
            break
        left &= ~_worst(found, left)
    is_open = (left & ~holds).tolist()
    rules = IdleRules(reductions=reductions(holds))
    undecided = (
        rules.apply(part)
        for part, own in zip(parsed.segments, of_segment, strict=True)
        if any(is_open[key] for key, _ in own)
    )
    return replace(rules, open=frozenset(undecided))


def _worst(found: Dependence, left: Bools) -> Bools:
    """Return [num_claims] those that matter most of those that are left."""
    matters = found.matters & left
    share = np.where(matters, found.contradicted / np.maximum(found.compared, 1), 0)
    return matters & (share >= _WORST * share.max())


def _matter_together(seen: SeenValues, left: Bools, rest: Ints, visits: Visits) -> bool:
    """Return whether outcomes depend on values together, such as on whether two are the same."""
    together = np.zeros(len(visits.node), np.int64)
    for key in np.flatnonzero(left).tolist():
        own = np.full(len(together), -1)
        own[seen.visit[seen.key == key]] = seen.value[seen.key == key]
        together = factorise_pairs(together, own)[0]
    every = np.arange(len(together))
    found = dependence_on(np.zeros_like(every), 1, every, together, rest, visits)
    return bool(found.explains[0])
