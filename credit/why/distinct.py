"""Of many marks that tell outcomes, those that say something of their own."""

from collections.abc import Sequence

import numpy as np

from graphcredit.credit.steps.arrays import Bools, Floats, Ints
from graphcredit.credit.why.within import given

TWINS = 0.9
"""Correlation from which marks are of the same rollouts."""
_UNEXPLAINED = 1.96
"""|z| given those before it, from which a mark says something of its own."""
_AS_MUCH = 0.9
"""Share of the |z| of a twin that a simpler mark must have."""


def distinct(
    marks: Floats,
    outcome: Floats,
    group: Ints,
    *,
    z: Floats,
    detail: Ints,
    rounds: Sequence[Bools],
    correction: float,
    most: int,
) -> list[int]:
    """Return marks, the one first that tells most, then always the one that tells most given those.

    Of marks that are of the same rollouts and tell as much, the simplest one is taken.

    Args:
        marks: [num_marks, num_rollouts], centred; all of them beyond chance by themselves.
        outcome: [num_rollouts], centred.
        group: [num_rollouts], in order.
        z: [num_marks]: what each tells by itself.
        detail: [num_marks]: how special each is.
        rounds: [num_marks] each: which marks are taken first, second and so on.
        correction: See `given`.
        most: Most marks.
    """
    size = np.sqrt((marks**2).sum(1))
    chosen: list[int] = []
    for part in rounds:
        while len(chosen) < most:
            now = given(marks, marks[chosen], outcome, group, correction) if chosen else z
            told = np.abs(now) * part * (now * z > 0)
            best = int(np.argmax(told))
            if told[best] < _UNEXPLAINED:
                break
            alike = np.abs(marks @ marks[best]) / np.maximum(size * size[best], 1e-12)
            twins = np.flatnonzero((alike >= TWINS) & (told >= _AS_MUCH * told[best]))
            chosen.append(int(min(twins, key=lambda at: (detail[at], -told[at]))))
    return chosen
