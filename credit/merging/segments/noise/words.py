"""Words that may stand for each other: what two looks at one state have in one place.

1. Looks at one state are aligned; where they differ, two phrases are proposed, one may be empty.
2. For each place, given by the tokens beside it, it is counted whether the choice tells states
   apart (`tally.py`).
3. Two phrases that may be exchanged in several places, and that tell states apart in none, are one
   everywhere. If there are no such phrases, they are one where that was seen.
4. This is repeated on what results, because phrases stand beside each other.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from graphcredit.credit.merging.segments.counts.tally import observe
from graphcredit.credit.merging.segments.looks.align import aligned
from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.noise.families import families_of
from graphcredit.credit.merging.segments.text.parse import Segment
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.merging.segments.text.tokens import SLOT, Tokens, is_layout, shows_value

Exchange = tuple[Tokens, Tokens]
"""Two phrases, in order."""
Bound = tuple[str, str, Tokens]
"""The tokens to the left and right, and a phrase between them."""
Detail = tuple[int, str, str, str]
"""A place of an exchange: its number, the tokens to the left and right, and the one after that if
a phrase is empty, for nothing stands between very many tokens."""

_EDGE = ""
_STATES = 3
"""An exchange must be seen in so many states."""
_SURE = 20
"""So rarely would chance alone speak against an exchange."""
_PLACES = 2
"""And in so many places to hold in all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WordRules:
    """Which phrase each phrase is replaced by."""

    free: dict[Tokens, Tokens] = field(default_factory=dict[Tokens, Tokens])
    """Everywhere."""
    bound: dict[Bound, Tokens] = field(default_factory=dict[Bound, Tokens])
    """Between two tokens."""
    lengths: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """How many tokens the phrases have that begin with a token, the longest first."""

    @classmethod
    def of(cls, free: dict[Tokens, Tokens], bound: dict[Bound, Tokens]) -> "WordRules":
        """Return the rules of some replacements."""
        lengths: dict[str, set[int]] = defaultdict(set)
        for phrase in [*free, *(phrase for _, _, phrase in bound)]:
            # Nothing is found everywhere: it is never replaced, only put in the place of a phrase.
            if phrase:
                lengths[phrase[0]].add(len(phrase))
        descending = {first: tuple(sorted(own, reverse=True)) for first, own in lengths.items()}
        return cls(free=free, bound=bound, lengths=descending)

    def apply(self, part: Segment) -> Segment:
        """Return a segment with one version of each phrase; the longest phrase goes first."""
        tokens = part.tokens
        if self.lengths.keys().isdisjoint(tokens):
            return part
        result: list[str] = []
        position = 0
        while position < len(tokens):
            length, new = self._at(tokens, position)
            result.extend(new)
            position += length
        return Segment(part.address, tuple(result))

    def found_in(self, tokens: Tokens) -> list[Tokens]:
        """Return the phrases in some tokens that may be replaced everywhere, the longest first."""
        found: list[Tokens] = []
        position = 0
        while position < len(tokens):
            length, _ = self._at(tokens, position)
            phrase = tokens[position : position + length]
            if phrase in self.free:
                found.append(phrase)
            position += length
        return found

    def _at(self, tokens: Tokens, position: int) -> tuple[int, Tokens]:
        """Return how many tokens are replaced at a position, and by what."""
        for length in self.lengths.get(tokens[position], ()):
            stop = position + length
            phrase = tokens[position:stop]
            if len(phrase) < length:
                continue
            new = self.free.get(phrase)
            if new is None and self.bound:
                left = tokens[position - 1] if position else _EDGE
                right = tokens[stop] if stop < len(tokens) else _EDGE
                new = self.bound.get((left, right, phrase))
            if new is not None:
                return length, new
        return 1, tokens[position : position + 1]


def learn_words(parsed: Parsed, visits: Visits) -> WordRules:
    """Return the exchanges that looks at one state show.

    Args:
        parsed: The texts of the nodes.
        visits: All visits of these nodes.
    """
    exchanges = _proposals(parsed, visits)
    if not exchanges:
        return WordRules()
    details, of_segment = _choices(parsed, exchanges)
    places = sorted({detail[:3] for detail in details})
    code = {place: position for position, place in enumerate(places)}
    of_detail = np.array([code[detail[:3]] for detail in details], np.int64)
    counts = observe(parsed, visits, of_segment, len(details)).of(of_detail, len(places))
    of_exchange = np.array([number for number, _, _ in places], np.int64)
    summed = counts.of(of_exchange, len(exchanges))
    seen_in = np.bincount(of_exchange, counts.disagree > 0, len(exchanges))
    # Of many places, one or the other never shows both phrases by chance; and pairs of looks at one
    # state are not independent.
    num_places = np.maximum(np.bincount(of_exchange, minlength=len(exchanges)), 1)
    enough = 2 * np.log(_SURE * num_places)[of_exchange]
    against = np.bincount(
        of_exchange, (counts.disagree == 0) & (counts.loose_expected >= enough), len(exchanges)
    )
    free = summed.is_free & (seen_in >= _PLACES) & (against == 0)
    # What stands for any value is no version of a word.
    free &= ~np.array([_has_bare_slot(exchange) for exchange in exchanges], np.bool_)
    frequency = _frequencies(parsed, exchanges)
    everywhere = [exchanges[n] for n in np.flatnonzero(free).tolist()]
    if everywhere:
        # What stands between versions of one phrase is not what varies there.
        found = _confirmed(WordRules.of(_unite(everywhere, frequency), {}), parsed, visits)
        if found.lengths:
            return found
    somewhere: dict[tuple[str, str], list[Exchange]] = defaultdict(list)
    for position in np.flatnonzero(counts.is_free).tolist():
        number, left, right = places[position]
        somewhere[left, right].append(exchanges[number])
    tied = {
        (left, right, old): new
        for (left, right), own in somewhere.items()
        for old, new in _unite(own, frequency).items()
    }
    return _confirmed(WordRules.of({}, tied), parsed, visits)


def _confirmed(rules: WordRules, parsed: Parsed, visits: Visits) -> WordRules:
    """Return the rules without those phrases that, taken together, are no noise.

    Two of them are rarely there one after the other; all that stand for one phrase are.
    """
    roots = sorted({*rules.free.values(), *rules.bound.values()})
    members = {root: {root} for root in roots}
    for phrase, root in rules.free.items():
        members[root].add(phrase)
    for (_, _, phrase), root in rules.bound.items():
        members[root].add(phrase)
    phrases = {phrase for own in members.values() for phrase in own if phrase}
    if not phrases:
        return rules
    roots_of = {phrase: [root for root in roots if phrase in members[root]] for phrase in phrases}
    longest = max(map(len, phrases))
    places: dict[tuple[Tokens, str, str], int] = {}
    of_segment = [
        [
            (places.setdefault((root, left, right), len(places)), " ".join(phrase))
            for left, right, _, phrase in _occurrences(part.tokens, phrases, longest)
            for root in roots_of[phrase]
        ]
        for part in parsed.segments
    ]
    number = {root: position for position, root in enumerate(roots)}
    root_of_place = np.array([number[root] for root, _, _ in places], np.int64)
    counts = observe(parsed, visits, of_segment, len(places)).of(root_of_place, len(roots))
    refused = {roots[n] for n in np.flatnonzero(counts.is_held).tolist()}
    return WordRules.of(
        {phrase: root for phrase, root in rules.free.items() if root not in refused},
        {place: root for place, root in rules.bound.items() if root not in refused},
    )


def _proposals(parsed: Parsed, visits: Visits) -> list[Exchange]:
    states: dict[Exchange, set[int]] = defaultdict(set)
    for state, differences in aligned(parsed, visits):
        for found in differences:
            # `slots.py` judges numbers, and `layout.py` signs without a word.
            both = found.one + found.other
            if not (shows_value(both) or all(map(is_layout, both))):
                states[min((found.one, found.other), (found.other, found.one))].add(state)
    return sorted(exchange for exchange, seen in states.items() if len(seen) >= _STATES)


def _has_bare_slot(exchange: Exchange) -> bool:
    """Return whether one of two phrases is a slot and nothing else, and the other has words."""
    return all(exchange) and any(set(phrase) == {SLOT} for phrase in exchange)


def _unite(exchanges: Iterable[Exchange], frequency: Counter[Tokens]) -> dict[Tokens, Tokens]:
    """Return the phrase that stands for each other one: nothing, or else the most frequent."""

    def rank(phrase: Tokens) -> tuple[bool, int, Tokens]:
        return (bool(phrase), -frequency[phrase], phrase)

    families = [(own, min(own, key=rank)) for own in families_of((), exchanges)]
    return {phrase: first for own, first in families for phrase in own if phrase != first}


def _occurrences(
    tokens: Tokens, phrases: set[Tokens], longest: int
) -> Iterator[tuple[str, str, str, Tokens]]:
    """Yield the token to the left, the one to the right, the one after that, and the phrase."""
    padded = (_EDGE, *tokens, _EDGE, _EDGE)
    for start in range(1, len(tokens) + 2):
        for length in range(min(longest, len(tokens) + 1 - start) + 1):
            phrase = padded[start : start + length]
            stop = start + length
            if phrase in phrases:
                yield padded[start - 1], padded[stop], padded[stop + 1], phrase


def _frequencies(parsed: Parsed, exchanges: Iterable[Exchange]) -> Counter[Tokens]:
    phrases = {phrase for exchange in exchanges for phrase in exchange}
    longest = max(map(len, phrases), default=0)
    number = np.bincount(parsed.segment, minlength=len(parsed.segments)).tolist()
    found = Counter[Tokens]()
    for part, times in zip(parsed.segments, number, strict=True):
        for *_, phrase in _occurrences(part.tokens, phrases, longest):
            found[phrase] += times
    return found


def _choices(
    parsed: Parsed, exchanges: list[Exchange]
) -> tuple[list[Detail], list[list[tuple[int, str]]]]:
    """Return the places that show both phrases, and the places and choices in each segment."""
    of_phrase: dict[Tokens, list[tuple[int, str]]] = defaultdict(list)
    for number, (one, other) in enumerate(exchanges):
        of_phrase[one].append((number, "one"))
        of_phrase[other].append((number, "other"))
    phrases, longest = set(of_phrase), max(map(len, of_phrase))
    per_segment = [
        [
            ((number, left, right, "" if all(exchanges[number]) else beyond), choice)
            for left, right, beyond, phrase in _occurrences(part.tokens, phrases, longest)
            for number, choice in of_phrase[phrase]
        ]
        for part in parsed.segments
    ]
    choices: dict[Detail, set[str]] = defaultdict(set)
    for place, choice in {item for found in per_segment for item in found}:
        choices[place].add(choice)
    places = sorted(place for place, seen in choices.items() if len(seen) == 2)
    code = {place: position for position, place in enumerate(places)}
    of_segment = [
        [(code[place], choice) for place, choice in found if place in code] for found in per_segment
    ]
    return places, of_segment
