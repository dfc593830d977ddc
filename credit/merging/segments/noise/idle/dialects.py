"""Dialects: claims whose values go together in every rollout, such as all phrases of a language.

One is dealt to a rollout, and all of its values with it. So outcomes are asked about them as one.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from graphcredit.credit.merging.segments.counts.tally import values_at
from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.noise.families import families_of
from graphcredit.credit.merging.segments.noise.idle.claims import Claims, Reduction, numbered
from graphcredit.credit.merging.segments.noise.idle.rules import IdleRules
from graphcredit.credit.merging.segments.text.parsed import Parsed

_LEAST = 10
"""Rollouts that must show values of two claims."""
_EXCEPTIONS = 0.02
"""Share of them in which the values may go together as they seldom do."""

Dialect = frozenset[int]
"""Claims that are one, numbered on over their kinds."""
_Dealt = dict[int, dict[int, str]]
"""By rollout, the value of each claim."""
_Value = tuple[int, str]
"""A claim and its value."""


def as_dialects(
    kinds: Sequence[Claims[Any]], parsed: Parsed, visits: Visits, *, unsure: int
) -> Claims[Dialect]:
    """Return claims of some kinds as fewer ones.

    Args:
        kinds: What each leaves out is applied to what those before have left.
        parsed: The texts of the nodes.
        visits: All visits of these nodes.
        unsure: The number of a kind of which only those claims count that go with others: looks
            that are likely at one state, if two outcomes are one, do not show that they are.
    """
    of_segment = numbered(kinds)
    kind_of = np.repeat(np.arange(len(kinds)), [len(own.things) for own in kinds])
    dealt = _dealt(parsed, visits, of_segment)
    together = _together(dealt)
    dialects = families_of(range(len(kind_of)), together)
    dialect_of = {key: number for number, own in enumerate(dialects) for key in own}
    version_of = _versions(together)
    found = Claims(
        things=dialects,
        of_segment=[
            sorted({(dialect_of[key], version_of.get((key, value)) or value) for key, value in own})
            for own in of_segment
        ],
        without=lambda chosen: _without(kinds, frozenset[int]().union(*chosen)),
    )
    is_sure = [bool((kind_of[sorted(own)] != unsure).any()) for own in dialects]
    return found.only(np.array(is_sure, np.bool_))


def _without(kinds: Sequence[Claims[Any]], left_out: frozenset[int]) -> IdleRules:
    reductions: list[Reduction] = []
    first = 0
    for own in kinds:
        things = [thing for key, thing in enumerate(own.things, first) if key in left_out]
        first += len(own.things)
        if things:
            reductions.append(own.without(things))
    return IdleRules(reductions=tuple(reductions))


def _dealt(
    parsed: Parsed, visits: Visits, of_segment: Sequence[Sequence[tuple[int, str]]]
) -> _Dealt:
    """Return the value that each rollout has of each key, of keys that nearly all keep."""
    seen = values_at(parsed, visits, of_segment, each_once=True)
    dealt: _Dealt = defaultdict(dict)
    rollouts, restless = defaultdict[int, set[int]](set), defaultdict[int, set[int]](set)
    rows = zip(seen.key.tolist(), seen.visit.tolist(), seen.value.tolist(), strict=True)
    for key, visit, code in rows:
        rollout, values = int(visits.trajectory[visit]), set(seen.texts[code])
        first = dealt[rollout].setdefault(key, min(values))
        rollouts[key].add(rollout)
        if values != {first}:
            restless[key].add(rollout)
    steady = {key for key, own in rollouts.items() if len(restless[key]) <= _EXCEPTIONS * len(own)}
    return {
        rollout: {key: value for key, value in own.items() if key in steady}
        for rollout, own in dealt.items()
    }


def _together(dealt: _Dealt) -> dict[tuple[int, int], Counter[tuple[str, str]]]:
    """Return the pairs of keys whose values go together, and how often each two were dealt."""
    steady = sorted({key for own in dealt.values() for key in own})
    found = {
        (one, other): Counter(
            (own[one], own[other]) for own in dealt.values() if one in own and other in own
        )
        for one, other in combinations(steady, 2)
    }
    return {pair: both for pair, both in found.items() if _go_together(both)}


def _go_together(both: Counter[tuple[str, str]]) -> bool:
    """Return whether each value comes with one on the other side, and there are several."""
    total = both.total()
    if total < _LEAST or len({value for value, _ in both}) < 2:
        return False
    return all(total - sum(_most(both, side).values()) <= _EXCEPTIONS * total for side in (0, 1))


def _most(both: Counter[tuple[str, str]], side: int) -> dict[str, int]:
    """Return how often each value on one side comes with its most common companion."""
    most: dict[str, int] = {}
    for pair, times in both.items():
        most[pair[side]] = max(most.get(pair[side], 0), times)
    return most


def _versions(together: dict[tuple[int, int], Counter[tuple[str, str]]]) -> dict[_Value, str]:
    """Return the same text for the values of a dialect that go together."""
    joined: list[tuple[_Value, _Value]] = []
    for (one, other), both in together.items():
        most = _most(both, 0)
        joined += [((one, a), (other, b)) for (a, b), times in both.items() if times == most[a]]
    families = families_of((), joined)
    return {value: str(number) for number, own in enumerate(families) for value in own}
