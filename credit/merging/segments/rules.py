"""What a merge has learned: the way from a text to what is left of it without noise."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.noise.evidence import Evidence
from graphcredit.credit.merging.segments.noise.garbled import GarbledWords
from graphcredit.credit.merging.segments.noise.idle.rules import IdleRules
from graphcredit.credit.merging.segments.noise.layout import LayoutRules
from graphcredit.credit.merging.segments.noise.passing import Judge
from graphcredit.credit.merging.segments.noise.repeats import Repeats
from graphcredit.credit.merging.segments.noise.slots import SlotRules
from graphcredit.credit.merging.segments.noise.typos import (
    TypoRules,
    action_words,
    correct,
    neighbours,
    word_counts,
)
from graphcredit.credit.merging.segments.noise.words import WordRules
from graphcredit.credit.merging.segments.text.parse import Segment, name_of, parse
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.merging.segments.text.tokens import tokenise
from graphcredit.credit.merging.segments.text.wrapped import SoftBreaks
from graphcredit.credit.steps.arrays import Bools, Ints

_KEPT = "!"
"""Begins the address of a segment that outcomes speak for."""


def is_marked(part: Segment) -> bool:
    """Return whether outcomes speak for all that a segment says."""
    return part.address.startswith(_KEPT)


def unmarked(part: Segment) -> Segment:
    """Return a segment as it was parsed."""
    return Segment(part.address.removeprefix(_KEPT), part.tokens) if is_marked(part) else part


@dataclass(frozen=True, kw_only=True, slots=True)
class NoiseRules:
    """Applied in this order. The defaults leave a text as it is."""

    finds_noise: bool = False
    """Whether one state was seen with two texts at all; if not, each text is a state."""
    invalid_moves: bool = False
    """Actions that were called invalid leave the state, after all."""
    breaks: SoftBreaks = field(default_factory=SoftBreaks)
    """Line breaks that say nothing."""
    loose_fields: frozenset[str] = frozenset()
    """Names of fields that are words before what they name, such as `well:`."""
    garbled: GarbledWords = field(default_factory=GarbledWords)
    """Words with digits for letters."""
    layout: LayoutRules = field(default_factory=LayoutRules)
    """Where punctuation and gaps say nothing."""
    slots: SlotRules = field(default_factory=SlotRules)
    """Numbers, times and identifiers that say nothing."""
    typos: TypoRules = field(default_factory=TypoRules)
    """How words are mistyped."""
    words: tuple[WordRules, ...] = ()
    """Phrases that may be exchanged, in rounds."""
    idle: IdleRules = field(default_factory=IdleRules)
    """What a rollout has of its own."""
    judge: Judge = field(default_factory=lambda: Judge(Evidence()))
    """Knows which segments come and go."""
    repeats: Repeats = field(default_factory=Repeats)
    """Segments of which a second one says nothing."""
    any_order: bool = False
    """The order of segments says nothing."""
    kept: frozenset[Segment] = frozenset()
    """What outcomes speak against leaving out, as it would be read without them."""

    def as_words(self, part: Segment) -> Segment:
        """Return a segment with its words as they were meant.

        The name of its field is among them, if that says nothing.
        """
        name = name_of(part.address) if self.loose_fields else ""
        if name in self.loose_fields:
            address = part.address.removesuffix(name).rstrip()
            part = Segment(address, (*tokenise(name), *part.tokens))
        return self.garbled.apply(part)

    def before_words(self, part: Segment) -> Segment:
        """Return a segment as typing errors are looked for in it."""
        part = unmarked(part)
        if self.kept and self.read(part) in self.kept:
            base = self.base(part)
            return Segment(_KEPT + base.address, base.tokens)
        return self._before_words(part)

    def after_typos(self, part: Segment) -> Segment:
        """Return what is left of a segment without typing errors."""
        return part if is_marked(part) else self.idle.apply(self.as_read(part))

    def read(self, part: Segment) -> Segment:
        """Return what would be left of a segment, if outcomes were not asked about it."""
        return self.idle.apply(self.as_read(self._before_words(part)))

    def base(self, part: Segment) -> Segment:
        """Return a segment before values and words are left out."""
        return self.layout.apply(self.as_words(part))

    def _before_words(self, part: Segment) -> Segment:
        return self.layout.apply(self.slots.apply(self.as_words(part)))

    def as_read(self, part: Segment) -> Segment:
        """Return a segment without typing errors as idle values are looked for in it."""
        for rules in self.words:
            part = rules.apply(part)
        # Values were left out before; what was done since then may show more of them.
        shows_more = self.words or self.layout.loose or self.typos.sorts
        return self.slots.apply(part) if shows_more else part

    def knows(self, part: Segment) -> bool:
        """Return whether the iteration shows that a segment tells states apart, or does not."""
        return is_marked(part) or (self.judge.knows(part) and not self.idle.is_open(part))

    def idle_words(self, text: str) -> frozenset[str]:
        """Return the words that a text has only in what is idle."""
        lost, left = set[str](), set[str]()
        for part in parse(self.breaks.joined(text)):
            before = self.as_read(self._before_words(part))
            after = before if self.read(part) in self.kept else self.idle.apply(before)
            lost.update(before.tokens)
            left.update(after.tokens)
        return frozenset(lost - left)

    def noise_in(self, parsed: Parsed, visits: Visits) -> Bools:
        """Return [num_pairs] which segments of texts come and go.

        Args:
            parsed: The texts of the nodes of whole groups, without noise inside their segments.
            visits: All visits of these nodes.
        """
        marked = np.array([is_marked(part) for part in parsed.segments], np.bool_)
        return self.judge.noise_in(parsed, visits) & ~marked[parsed.segment]

    def corrected(
        self, parsed: Parsed, group_of_text: Ints, weight: Ints, actions: list[list[str]]
    ) -> Parsed:
        """Return the texts without typing errors.

        Args:
            parsed: Texts of whole groups.
            group_of_text: [num_texts] the group of each.
            weight: [num_texts] visits of each.
            actions: What was done in each group.
        """
        if not self.typos.sorts:
            return parsed
        corrections: list[dict[str, list[str]]] = []
        beside: list[Counter[tuple[str, str]]] = []
        for group, own in enumerate(actions):
            weight_there = weight * (group_of_text == group)
            counts = word_counts(parsed, weight_there)
            corrections.append(self.typos.corrections(counts, action_words(own)))
            beside.append(neighbours(parsed, weight_there))
        return parsed.map_in_groups(
            group_of_text, lambda g, part: correct(part, corrections[g], beside[g])
        )
