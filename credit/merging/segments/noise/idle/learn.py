"""Claims are asked about in rounds, each on what those before have left."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from graphcredit.credit.merging.segments.looks.sample import SampledGroups
from graphcredit.credit.merging.segments.noise.idle.claims import Claims
from graphcredit.credit.merging.segments.noise.idle.decide import decide
from graphcredit.credit.merging.segments.noise.idle.dialects import as_dialects
from graphcredit.credit.merging.segments.noise.idle.drawn import find_drawn_words
from graphcredit.credit.merging.segments.noise.idle.echoes import find_echoes
from graphcredit.credit.merging.segments.noise.idle.frames import Frame
from graphcredit.credit.merging.segments.noise.idle.numbers import find_numbers
from graphcredit.credit.merging.segments.noise.idle.own import own_values
from graphcredit.credit.merging.segments.noise.idle.phrases import find_phrases
from graphcredit.credit.merging.segments.noise.idle.rules import IdleRules
from graphcredit.credit.merging.segments.noise.idle.versions import find_versions
from graphcredit.credit.merging.segments.text.parse import Segment
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.merging.segments.text.tokens import tokenise
from graphcredit.credit.steps.arrays import Ints

_PASSES = 3
"""What a later claim leaves out may have hidden that an earlier one holds."""


def learn_idle(
    parsed: Parsed,
    sample: SampledGroups,
    as_read: Callable[[Segment], Segment],
    rest_of: Callable[[Parsed], Ints],
) -> IdleRules:
    """Return what outcomes do not depend on.

    Args:
        parsed: The texts of the nodes, without other noise than segments that come and go.
        sample: The visits of these nodes.
        as_read: Does to an action what was done to the texts.
        rest_of: Returns [num_texts] codes, equal for texts that are one without noise.
    """
    rules = IdleRules()
    for _ in range(_PASSES):
        before = len(rules.reductions)
        rounds = _Rounds(sample=sample, as_read=as_read, rest_of=rest_of)
        for find in rounds.all:
            now = parsed.map(rules.apply)
            rules = rules.then(decide(now, sample.visits, find(now), rest_of))
        if len(rules.reductions) == before:
            break
    return rules


_Round = Callable[[Parsed], list[Claims[Any]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rounds:
    """Finds the claims of each round in what is left of the texts."""

    sample: SampledGroups
    as_read: Callable[[Segment], Segment]
    rest_of: Callable[[Parsed], Ints]
    frames: set[Frame] = field(default_factory=set[Frame])
    """Those that were asked about."""

    @property
    def all(self) -> list[_Round]:
        """The rounds in order."""
        return [
            self._numbers,
            self._echoes_and_own,
            lambda now: [self._own(now, 2)],
            lambda now: [self._own(now, 3)],
            lambda now: [find_versions(now, self.sample.visits, IdleRules())],
            self._phrases_and_versions,
            self._words_and_versions,
        ]

    @property
    def _used(self) -> frozenset[str]:
        """Tokens of actions."""
        return frozenset(token for text in self.sample.actions for token in tokenise(text))

    def _numbers(self, now: Parsed) -> list[Claims[Any]]:
        return [find_numbers(now, self.sample.visits, self._used)]

    def _echoes_and_own(self, now: Parsed) -> list[Claims[Any]]:
        echoes = find_echoes(now, self.sample, self.as_read)
        own = self._own(now, 1)
        self.frames.update(*echoes.things)
        return [echoes, own]

    def _own(self, now: Parsed, length: int) -> Claims[Frame]:
        found = own_values(now, self.sample.visits, self._used, self.frames, length)
        self.frames.update(found.things)
        return found

    def _phrases_and_versions(self, now: Parsed) -> list[Claims[Any]]:
        visits = self.sample.visits
        phrases = find_phrases(now, visits, self._used, IdleRules(), is_certain=True)
        if not phrases.things:
            return [phrases]
        every = phrases.without(phrases.things)
        # Rare phrases show where looks are likely of one state, if the others are left out.
        alike = visits.if_alike_is_one(self.rest_of(now.map(every.apply))[visits.node])
        rare = find_phrases(now, alike, self._used, every, is_certain=False)
        both = IdleRules(reductions=(every, rare.without(rare.things)))
        found = [phrases, rare, find_versions(now, visits, both)]
        return [as_dialects(found, now, visits, unsure=1)]

    def _words_and_versions(self, now: Parsed) -> list[Claims[Any]]:
        words = find_drawn_words(now, self.sample.visits, self._used)
        if not words.things:
            return [words]
        every = words.without(words.things)
        return [words, find_versions(now, self.sample.visits, every)]
