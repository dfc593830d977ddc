"""Of many marks that tell outcomes, those that say something of their own."""

from collections.abc import Sequence

import numpy as np

from graphcredit.credit.steps.arrays import Bools, Floats, Ints
from graphcredit.credit.why.within import false_discovery, given, p_values

TWINS = 0.9
"""Correlation from which marks are of the same rollouts."""
_UNEXPLAINED = 1.96
"""|z| by itself, and given those before it, from which a mark says something of its own."""
_AS_MUCH = 0.9
"""Share of the |z| of a twin that a simpler mark must have."""


def distinct(
    marks: Floats,
    outcome: Floats,
    group: Ints,
    *,
    z: Floats,
    q: Floats,
    level: float,
    num_tests: int,
    detail: Ints,
    rounds: Sequence[Bools],
    correction: float,
    most: int,
) -> dict[int, float]:
    """Return marks, the one first that tells most, then always the one that tells most given those.

    The first is beyond chance by itself; others are so, or given those before them: two causes
    hide each other. Of marks of the same rollouts that tell as much, the simplest one is taken, and
    of those the one with the largest effect.

    Args:
        marks: [num_marks, num_rollouts], centred.
        outcome: [num_rollouts], centred.
        group: [num_rollouts], in order.
        z: [num_marks]: what each tells by itself.
        q: [num_marks]: its false-discovery rate.
        level: The rate up to which a mark is beyond chance.
        num_tests: Marks that were looked at, those included that tell too little to be here.
        detail: [num_marks]: how special each is.
        rounds: [num_marks] each: which marks are taken first, second and so on.
        correction: See `given`.
        most: Most marks.

    Returns:
        The place of each to its false-discovery rate: the lower one of that by itself and given
        those before it.
    """
    size = np.sqrt((marks**2).sum(1))
    effect = np.abs(marks @ outcome) / np.maximum(size**2, 1e-12)
    chosen: dict[int, float] = {}
    for part in rounds:
        while len(chosen) < most:
            now, rate = z, q
            if chosen:
                now = given(marks, marks[list(chosen)], outcome, group, correction)
                rate = np.minimum(q, false_discovery(p_values(now), num_tests))
            told = np.abs(now) * part * (now * z > 0) * (rate <= level)
            told *= np.minimum(np.abs(now), np.abs(z)) >= _UNEXPLAINED
            best = int(np.argmax(told))
            if told[best] == 0:
                break
            alike = np.abs(marks @ marks[best]) / np.maximum(size * size[best], 1e-12)
            twins = np.flatnonzero((alike >= TWINS) & (told >= _AS_MUCH * told[best]))
            order = np.lexsort((-effect[twins], -told[twins].round(1), detail[twins]))
            place = int(twins[order[0]])
            chosen[place] = float(rate[place])
    return chosen
