"""The rules of `segments`, in their order of precedence.

What the rules of the user say (`states.toml`) comes first: it is done to the texts before these
rules see them, and no rule unites what the user keeps. Then a typed token belongs to the first rule
that names its kind and has evidence; a veto of that rule is final, and the token stays. Lines come
last. To say that a date is never state is to add a row for dates first, with the evidence `always`
and no veto.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from graphcredit.credit.merging.segments.statistics import LONG, PlaceStatistics
from graphcredit.credit.steps.arrays import Bools, Floats

Test: TypeAlias = Callable[[PlaceStatistics], Bools]
"""Returns [num_places] for which the test holds."""

LINES = "line"
"""The kind of what stands in a line of its own."""

DRAWN = 0.8
"""Values of one state must differ as often as those of different states, but for chance."""
CLASSES = 2
"""Equivalence classes in which a value must differ: one may be a mistake of the log."""
GROUPS = 4
"""Groups that have such classes: in few, the first states may have been dealt."""
DEALT = 3
"""The same of numbers: what was dealt for a rollout differs in its first states, too."""
NEARLY_ALL = 0.98
"""Share that is all, but for rare coincidences."""
RUNNING = 0.9
"""Share of the steps at which a clock goes on; a day ends, too."""
FEW = 20
"""With fewer pairs, steps or classes, a share says little."""
ALIKE = 0.5
"""Share of the pairs within a class of which the same must be left."""
LOOPS = 0.7
"""Share of the steps that may lead back to the same text."""


def always(statistics: PlaceStatistics) -> Bools:
    """Hold everywhere: no evidence is needed."""
    return np.ones(len(statistics.changing), np.bool_)


def drawn(statistics: PlaceStatistics) -> Bools:
    """Hold where values differ within a class as often as between classes, and tell nothing."""
    return varies(statistics) & ~statistics.carried & ~statistics.tells


def varies(statistics: PlaceStatistics) -> Bools:
    """Hold where values differ within a class as often as between classes."""
    inside, between = _differing(*statistics.within), _differing(*statistics.between)
    classes, groups = statistics.differing
    seen = (classes >= CLASSES) & (groups >= GROUPS) & (statistics.steps >= FEW)
    return seen & (inside >= DRAWN * between)


def gauged(statistics: PlaceStatistics) -> Bools:
    """Hold where numbers are drawn in so many classes that they were not dealt."""
    return drawn(statistics) & (statistics.differing[0] >= DEALT)


def wanders(statistics: PlaceStatistics) -> Bools:
    """Hold where numbers are drawn in many classes, however slowly, and no action moves them."""
    return varies(statistics) & (statistics.differing[0] >= FEW) & ~statistics.driven


def own(statistics: PlaceStatistics) -> Bools:
    """Hold where each rollout has values that no other one has in the same state."""
    return (
        varies(statistics)
        & (_differing(*statistics.within) >= NEARLY_ALL)
        & (_differing(*statistics.between) >= NEARLY_ALL)
        & (statistics.lengths >= LONG)
    )


def runs(statistics: PlaceStatistics) -> Bools:
    """Hold where values of one state differ, and only rise or only fall from step to step."""
    goes_on = (statistics.running >= RUNNING) & (statistics.steps >= FEW)
    return varies(statistics) & goes_on


def counts(statistics: PlaceStatistics) -> Bools:
    """Hold where the number of steps alone decides about the value."""
    agreeing, pairs = statistics.at_one_time
    is_timed = (pairs >= FEW) & (agreeing >= NEARLY_ALL * pairs) & (statistics.steps >= FEW)
    goes_on = (statistics.running >= RUNNING) & (statistics.changing >= RUNNING)
    return is_timed & goes_on & (_differing(*statistics.within) <= 1 - NEARLY_ALL)


def used(statistics: PlaceStatistics) -> Bools:
    """Veto values that actions name."""
    return statistics.used


def decides(statistics: PlaceStatistics) -> Bools:
    """Veto values on which it depends what an action does."""
    return statistics.decides


def guides(statistics: PlaceStatistics) -> Bools:
    """Veto values on which it depends what the policy does."""
    return statistics.guides


def unites(statistics: PlaceStatistics) -> Bools:
    """Veto, last, what does not tell states apart as well as before.

    What is left of the texts must be the same in most of an equivalence class: else its texts are
    different things that were said, with something in common. And it must be another one after most
    steps: in no environment do most actions do nothing.
    """
    return (statistics.alike < ALIKE) | (statistics.loops > LOOPS)


def _differing(agreeing: Floats, pairs: Floats) -> Floats:
    return 1 - agreeing / np.maximum(pairs, 1) - (pairs == 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class NoiseRule:
    """A row: what may be left out, and what must be shown before."""

    name: str
    kinds: frozenset[str]
    """Kinds of typed tokens that it may leave out, or `LINES`."""
    evidence: tuple[Test, ...]
    """One of these must hold."""
    vetoes: tuple[Test, ...]
    """None of these may hold."""


_MATTERS = (used, decides, guides, unites)

RULES: tuple[NoiseRule, ...] = (
    NoiseRule(
        name="prints",
        kinds=frozenset(
            {"colours", "attribute", "identifier", "date", "ago", "time", "line number"}
        ),
        evidence=(drawn, own, runs, counts),
        vetoes=_MATTERS,
    ),
    NoiseRule(
        name="counters",
        kinds=frozenset({"number"}),
        evidence=(counts,),
        vetoes=(used, decides, unites),
    ),
    NoiseRule(
        name="gauges",
        kinds=frozenset({"number", "bar"}),
        evidence=(gauged, own, runs, wanders),
        vetoes=_MATTERS,
    ),
    NoiseRule(name="lines", kinds=frozenset({LINES}), evidence=(drawn,), vetoes=(decides, unites)),
)
"""Applied in this order."""
