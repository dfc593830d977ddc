"""Claims are asked about in rounds, each on what those before have left."""

from collections.abc import Callable
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
    visits, rules = sample.visits, IdleRules()
    used = frozenset(token for text in sample.actions for token in tokenise(text))
    frames = set[Frame]()

    def echoes_and_own(now: Parsed) -> list[Claims[Any]]:
        echoes, own = find_echoes(now, sample, as_read), own_values(now, visits, used, frames, 1)
        frames.update(*echoes.things, own.things)
        return [echoes, own]

    def own_of(length: int) -> Callable[[Parsed], list[Claims[Any]]]:
        def claims(now: Parsed) -> list[Claims[Any]]:
            own = own_values(now, visits, used, frames, length)
            frames.update(own.things)
            return [own]

        return claims

    def versions(now: Parsed) -> list[Claims[Any]]:
        return [find_versions(now, visits, IdleRules())]

    def phrases_and_versions(now: Parsed) -> list[Claims[Any]]:
        phrases = find_phrases(now, visits, used, IdleRules(), is_certain=True)
        if not phrases.things:
            return [phrases]
        every = phrases.without(phrases.things)
        # Rare phrases show where looks are likely of one state, if the others are left out.
        alike = visits.if_alike_is_one(rest_of(now.map(every.apply))[visits.node])
        rare = find_phrases(now, alike, used, every, is_certain=False)
        both = IdleRules(reductions=(every, rare.without(rare.things)))
        found = [phrases, rare, find_versions(now, visits, both)]
        return [as_dialects(found, now, visits, unsure=1)]

    def words_and_versions(now: Parsed) -> list[Claims[Any]]:
        words = find_drawn_words(now, visits, used)
        if not words.things:
            return [words]
        every = words.without(words.things)
        return [words, find_versions(now, visits, every)]

    steps = (
        lambda now: [find_numbers(now, visits, used)],
        echoes_and_own,
        own_of(2),
        own_of(3),
        versions,
        phrases_and_versions,
        words_and_versions,
    )
    for _ in range(_PASSES):
        before = len(rules.reductions)
        for find in steps:
            now = parsed.map(rules.apply)
            rules = rules.then(decide(now, visits, find(now), rest_of))
        if len(rules.reductions) == before:
            break
    return rules
