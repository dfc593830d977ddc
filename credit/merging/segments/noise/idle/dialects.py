"""Dialects: claims whose values go together in every rollout, such as all phrases of a language.

One is dealt to a rollout, and all of its values with it. So outcomes are asked about them as one.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from graphcredit.credit.merging.segments.counts.tally import values_at
from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.noise.idle.claims import Claims
from graphcredit.credit.merging.segments.noise.idle.families import families_of
from graphcredit.credit.merging.segments.noise.idle.rules import IdleRules
from graphcredit.credit.merging.segments.text.parsed import Parsed

_LEAST = 10
"""Rollouts that must show values of two claims."""
_EXCEPTIONS = 0.02
"""Share of them in which the values may go together as they seldom do."""

_Claim = tuple[int, int]
"""The number of a kind, and of a claim of this kind."""
_Dealt = dict[int, dict[int, str]]
"""By rollout, the value of each claim."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """Claims that are one."""

    claims: frozenset[_Claim]


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
    claims = [(kind, number) for kind, own in enumerate(kinds) for number in range(len(own.things))]
    key_of = {claim: key for key, claim in enumerate(claims)}
    of_segment = [
        [(key_of[kind, n], value) for kind, own in enumerate(found) for n, value in own]
        for found in zip(*(own.of_segment for own in kinds), strict=True)
    ]
    dealt = _dealt(parsed, visits, of_segment)
    steady = sorted({key for own in dealt.values() for key in own})
    pairs = [pair for pair in combinations(steady, 2) if _go_together(dealt, *pair)]
    version_of = _versions(dealt, pairs)
    groups = families_of(range(len(claims)), pairs)
    dialects = [Dialect(frozenset(claims[key] for key in own)) for own in groups]
    dialect_of = {key: number for number, own in enumerate(groups) for key in own}
    found = Claims(
        things=dialects,
        of_segment=[
            sorted({(dialect_of[k], version_of.get((str(k), v)) or v) for k, v in own})
            for own in of_segment
        ],
        without=lambda chosen: _without(kinds, chosen),
    )
    is_sure = [any(kind != unsure for kind, _ in own.claims) for own in dialects]
    return found.only(np.array(is_sure, np.bool_))


def _without(kinds: Sequence[Claims[Any]], chosen: Sequence[Dialect]) -> IdleRules:
    left_out = {claim for dialect in chosen for claim in dialect.claims}
    found = [
        [thing for n, thing in enumerate(own.things) if (kind, n) in left_out]
        for kind, own in enumerate(kinds)
    ]
    return IdleRules(
        reductions=tuple(
            own.without(things) for own, things in zip(kinds, found, strict=True) if things
        )
    )


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


def _go_together(dealt: _Dealt, one: int, other: int) -> bool:
    """Return whether each value of one key comes with one value of the other, and none is all."""
    both = Counter((own[one], own[other]) for own in dealt.values() if one in own and other in own)
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


def _versions(dealt: _Dealt, pairs: list[tuple[int, int]]) -> dict[tuple[str, str], str]:
    """Return the same text for the values of a dialect that go together."""
    joined: list[tuple[tuple[str, str], tuple[str, str]]] = []
    for one, other in pairs:
        both = Counter(
            (own[one], own[other]) for own in dealt.values() if one in own and other in own
        )
        most = _most(both, 0)
        joined += [
            ((str(one), a), (str(other), b)) for (a, b), times in both.items() if times == most[a]
        ]
    families = families_of((), joined)
    return {value: str(number) for number, own in enumerate(families) for value in own}
