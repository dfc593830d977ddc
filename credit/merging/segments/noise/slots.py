"""Numbers, times and identifiers that say nothing: by where they stand.

A place is described four ways, from the narrowest: the whole segment with such tokens left out; the
tokens on both sides; the one on the left, or on the right; the type. The narrowest description that
there is a verdict on counts, so what was learned of one sentence holds for the next like it.

A value that stays for a whole rollout might be what was dealt. It is a name, and noise, if it is
another one in nearly every other rollout of the group, has four characters or more, and no action
has it: a session, a host, a folder.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from graphcredit.credit.merging.segments.counts.tally import ValueCounts, observe
from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.text.parse import Segment
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.merging.segments.text.tokens import (
    SLOT,
    is_escape,
    is_word,
    kind_of,
    tokenise,
)
from graphcredit.credit.steps.arrays import Bools, Floats, Ints

Place = tuple[str, ...]

_EDGE = ""
_NUMBERS = frozenset({"integer", "decimal"})
"""They mean too many things to be judged by less than the tokens on both sides."""

_SURE = 6.0
"""With fewer pairs that are expected to differ, the verdict on one segment does not stand against
noise between the same two tokens."""
_SHORT = 4
"""A value of fewer characters is no name of a rollout."""

_LETTERS = re.compile(r"[a-f]{3,}")
_IDENTIFIERS = ("digits", "hex", "identifier")
"""Types of tokens that an identifier in hexadecimal may have."""
_CLASSES = 3
"""In so many states must a number differ: cards that are dealt differ, too."""
_DEPTHS = 5
"""Descriptions of a place."""

_WILD = 5
"""So many words, most of them seen once, show that a place can hold any."""

_PURE = 0.9
"""Share of the classes in which a value must differ for its type alone to make it noise."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SlotRules:
    """Which places hold a value that says nothing."""

    is_noise: dict[Place, bool] = field(default_factory=dict[Place, bool])
    """By description; a place that is not here has no verdict."""

    lengths: Mapping[Place, frozenset[int]] = field(default_factory=dict[Place, frozenset[int]])
    """Of identifiers between two tokens: one in hexadecimal may have no digit."""

    def apply(self, segment: Segment) -> Segment:
        """Return a segment without the values that say nothing."""
        segment = _masked(segment, self.is_noise, self.lengths)
        if not self.wild:
            return segment
        tokens = [
            SLOT if (segment.address, left, right) in self.wild and is_word(token) else token
            for left, token, right in _triples(segment)
        ]
        return Segment(segment.address, tuple(tokens))

    wild: frozenset[Place] = frozenset()
    """Address, left and right of places where any word says nothing."""


def learn_slots(parsed: Parsed, visits: Visits, actions: Iterable[str]) -> SlotRules:
    """Return the places whose values say nothing.

    Args:
        parsed: The texts of the nodes.
        visits: All visits of these nodes.
        actions: Texts of actions. A value that one of them has in it is no name of a rollout.
    """
    used = frozenset(token for action in actions for token in tokenise(action))
    slots = [list(_places(part)) for part in parsed.segments]
    is_noise: dict[Place, bool] = {}
    depths = [_judge(parsed, visits, slots, used, depth) for depth in range(_DEPTHS)]
    for found in depths:
        is_noise |= found.is_noise
    narrow, between = depths[:2]
    for place, wider in narrow.beside.items():
        # A segment that was seldom seen does not stand against all others; nor does one where a
        # number is noise, if in all of them together it is a part of the state.
        is_outvoted = place in narrow.weak and is_noise.get(wider, False)
        if is_outvoted or (place in narrow.drawn and wider in between.bound):
            is_noise.pop(place, None)
    lengths = _lengths(parsed, slots, is_noise)
    wild = _wild(parsed, is_noise, lengths, visits)
    return SlotRules(is_noise=is_noise, lengths=lengths, wild=wild)


def _lengths(
    parsed: Parsed,
    slots: list[list[tuple[int, tuple[Place, ...]]]],
    is_noise: Mapping[Place, bool],
) -> dict[Place, frozenset[int]]:
    """Return how long the identifiers are that stand, as noise, between two tokens."""
    found: dict[Place, set[int]] = defaultdict(set)
    for part, own in zip(parsed.segments, slots, strict=True):
        for position, places in own:
            if _verdict(places, is_noise) and places[4][1].startswith(_IDENTIFIERS):
                found[places[1]].add(len(part.tokens[position]))
    return {place: frozenset(own) for place, own in found.items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Judged:
    """What places are, by one description of them."""

    is_noise: dict[Place, bool]
    """Those that there is a verdict on."""
    beside: dict[Place, Place]
    """The tokens on both sides, of some segment."""
    weak: set[Place]
    """Little was seen there."""
    drawn: set[Place]
    """Numbers that are noise, and no clocks."""
    bound: set[Place]
    """Actions, the value before, or success speak against noise."""


def _judge(
    parsed: Parsed,
    visits: Visits,
    slots: list[list[tuple[int, tuple[Place, ...]]]],
    used: frozenset[str],
    depth: int,
) -> _Judged:
    """Judge all places by one description of them; `slots` has those of each segment."""
    code_of: dict[Place, int] = {}
    beside: dict[int, set[Place]] = defaultdict(set)
    numbers, telling = set[int](), set[int]()
    of_segment: list[list[tuple[int, str]]] = []
    for part, found in zip(parsed.segments, slots, strict=True):
        of_segment.append([])
        for position, places in found:
            code = code_of.setdefault(places[depth], len(code_of))
            beside[code].add(places[1])
            if places[4][1] in _NUMBERS:
                numbers.add(code)
            token = part.tokens[position]
            if len(token) < _SHORT or token in used:
                telling.add(code)
            of_segment[-1].append((code, token))
    counts = observe(parsed, visits, of_segment, len(code_of))
    members = np.array([len(beside[code]) for code in range(len(code_of))], np.int64)
    is_number, tells = (_flags(codes, len(code_of)) for codes in (numbers, telling))
    is_name = counts.is_name & ~tells
    bound = counts.is_driven | counts.decides | (counts.is_carried & ~is_name)
    is_doubtful = is_number & counts.may_be_carried & ~is_name
    verdict = np.array(_verdicts(counts, bound, is_doubtful, members, is_number, depth), np.int64)

    def among(which: Bools) -> set[Place]:
        return {place for place, code in code_of.items() if which[code]}

    return _Judged(
        is_noise={place: bool(verdict[k] > 0) for place, k in code_of.items() if verdict[k]},
        beside={place: min(beside[code]) for place, code in code_of.items()},
        weak=among((counts.loose_expected < _SURE) & ~bound),
        drawn=among(is_number & ~counts.is_clock & (verdict > 0)),
        bound=among(bound),
    )


def _flags(codes: set[int], length: int) -> Bools:
    """Return [length] which codes are in a set."""
    return np.array([code in codes for code in range(length)], np.bool_)


def _verdicts(
    counts: ValueCounts,
    bound: Bools,
    is_doubtful: Bools,
    members: Ints,
    is_number: Bools,
    depth: int,
) -> list[int]:
    """Return 1 for noise, -1 for a part of the state, 0 where nothing is known."""
    enough = ~is_number | (counts.disagree >= _CLASSES)
    noise, clock, state = (
        counts.is_noise & enough & ~bound & ~is_doubtful,
        counts.is_clock & ~bound,
        counts.is_state,
    )
    state |= bound
    if depth:
        share: Floats = counts.disagree / np.maximum(counts.disagree + counts.agree, 1)
        is_pure: Bools = share >= (_PURE if depth == _DEPTHS - 1 else 0.5)
        noise, state = noise & is_pure, state & False
    if depth > 1:
        is_wide = ~is_number & (members >= depth)
        noise, clock = noise & is_wide, clock & False
    return np.where(noise | clock, 1, np.where(state, -1, 0)).tolist()


def _masked(
    segment: Segment, is_noise: Mapping[Place, bool], lengths: Mapping[Place, frozenset[int]]
) -> Segment:
    if not is_noise:
        return segment
    noise = [at for at, descriptions in _places(segment) if _verdict(descriptions, is_noise)]
    # An identifier in hexadecimal may have no digit.
    may_be_letters = bool(lengths) and any(map(_is_hexadecimal, segment.tokens))
    if not (noise or may_be_letters):
        return segment
    tokens = list(segment.tokens)
    for position in noise:
        tokens[position] = SLOT
    if may_be_letters:
        typed = tuple([SLOT if kind_of(token) else token for token in segment.tokens])
        for position, (left, token, right) in enumerate(_triples(Segment("", typed))):
            place = ("between", segment.address, left, right)
            if _is_hexadecimal(token) and len(token) in lengths.get(place, ()):
                tokens[position] = SLOT
    return Segment(segment.address, tuple(tokens))


def _verdict(descriptions: tuple[Place, ...], is_noise: Mapping[Place, bool]) -> bool:
    """Return whether the narrowest description of a place with a verdict says that it is noise."""
    verdicts = (is_noise.get(place) for place in descriptions)
    return next((verdict for verdict in verdicts if verdict is not None), False)


@lru_cache(1 << 18)
def _is_hexadecimal(token: str) -> bool:
    return _LETTERS.fullmatch(token) is not None


def _wild(
    parsed: Parsed,
    is_noise: Mapping[Place, bool],
    lengths: Mapping[Place, frozenset[int]],
    visits: Visits,
) -> frozenset[Place]:
    """Return the places where looks at one state have one word after the other, ever new ones."""
    triples = [
        [(part.address, *triple) for triple in _triples(_masked(part, is_noise, lengths))]
        for part in parsed.segments
    ]
    words: dict[Place, set[str]] = defaultdict(set)
    occurrences = Counter[str](token for found in triples for _, _, token, _ in set(found))
    for found in triples:
        for address, left, token, right in found:
            if is_word(token):
                words[address, left, right].add(token)
    places = [
        place
        for place, own in words.items()
        if len(own) >= _WILD and 2 * sum(occurrences[word] == 1 for word in own) > len(own)
    ]
    if not places:
        return frozenset()
    number = {place: position for position, place in enumerate(sorted(places))}
    of_segment = [
        [
            (number[address, left, right], token)
            for address, left, token, right in found
            if (address, left, right) in number and is_word(token)
        ]
        for found in triples
    ]
    noise = observe(parsed, visits, of_segment, len(number)).is_free.tolist()
    return frozenset(place for place, verdict in zip(number, noise, strict=True) if verdict)


def _triples(segment: Segment) -> Iterator[tuple[str, str, str]]:
    """Yield each token between its neighbours."""
    padded = (_EDGE, *segment.tokens, _EDGE)
    return zip(padded, padded[1:-1], padded[2:], strict=False)


def _places(segment: Segment) -> Iterator[tuple[int, tuple[Place, ...]]]:
    """Yield the position of each token with a type, and the descriptions of its place.

    Gaps and colours are no part of a place: they may be noise themselves.
    """
    kinds = [kind_of(token) for token in segment.tokens]
    if not any(kinds):
        return
    address = segment.address
    positions = [
        place
        for place, token in enumerate(segment.tokens)
        if not (token.isspace() or is_escape(token))
    ]
    masked = [SLOT if kinds[place] else segment.tokens[place] for place in positions]
    template = "\x1f".join(masked)
    padded = (_EDGE, *masked, _EDGE)
    for number, position in enumerate(positions):
        kind = kinds[position]
        if kind and kind != "slot":
            left, right = padded[number], padded[number + 2]
            yield (
                position,
                (
                    ("segment", address, template, str(number)),
                    ("between", address, left, right),
                    ("after", address, left),
                    ("before", address, right),
                    ("type", kind),
                ),
            )
