"""Applies the rules to observations that are certainly of one state, and says what is irrelevant.

1. Hypotheses: what the evidence of a rule speaks for, by each description of its place.
2. Vetoes: outcomes are compared where the same is left of texts without all hypotheses; what a
   rule's vetoes speak against is kept. The last of them holds for each rule: what is left must be
   the same within a class, and another text after most steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from graphcredit.credit.merging.segments.learned import Irrelevant, Reader
from graphcredit.credit.merging.segments.observations import Observations
from graphcredit.credit.merging.segments.parse import Parser
from graphcredit.credit.merging.segments.places import NUM_LEVELS, Place, sightings_at
from graphcredit.credit.merging.segments.presence import RARE, forms_in, presence, words_in
from graphcredit.credit.merging.segments.rules import LINES, RULES, NoiseRule
from graphcredit.credit.merging.segments.sample import SampledGroups
from graphcredit.credit.merging.segments.statistics import PlaceStatistics, PresenceStatistics
from graphcredit.credit.merging.segments.tokens import Line, split
from graphcredit.credit.steps.arrays import Ints

AGREEING = 6
"""Pairs within classes that all agree, from which a value is a part of the state."""

_Key = TypeVar("_Key")


def learn(sample: SampledGroups, rules: Sequence[NoiseRule] = RULES) -> Irrelevant:
    """Return what is irrelevant in a sample."""
    evidence = _Evidence.of(sample)
    hypotheses = evidence.judge([replace(rule, vetoes=()) for rule in rules], Irrelevant())
    if not hypotheses:
        return hypotheses
    return evidence.judge(rules, hypotheses)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Evidence:
    """Parsed texts, and where they were seen."""

    observations: Observations
    texts: list[list[Line]]
    """The lines of each node's text."""
    mentioned: list[frozenset[str]]
    """Words and typed tokens of each action."""

    @classmethod
    def of(cls, sample: SampledGroups) -> "_Evidence":
        parser = Parser()
        actions = (split("", action) for action in sample.actions)
        return cls(
            observations=sample.observations,
            texts=[parser.lines(text) for text in sample.texts],
            mentioned=[
                frozenset([*line.values, *" ".join(line.pieces).split()]) for line in actions
            ],
        )

    def judge(self, rules: Sequence[NoiseRule], hypotheses: Irrelevant) -> Irrelevant:
        """Return what the rules leave out, with outcomes compared where the hypotheses hold."""
        kept = self._kept(hypotheses)
        places = self._places(rules, kept)
        lines = [rule for rule in rules if LINES in rule.kinds]
        if not lines:
            return Irrelevant(places=places)
        of = self.observations
        forms = [forms_in(lines) for lines in self.texts]
        words = words_in(forms, of.node.tolist())
        known = dict.fromkeys(set[str]().union(*words) - {RARE}, False)
        return Irrelevant(
            places=places,
            lines=self._present(forms, lines, kept),
            words=known | self._present(words, lines, kept),
        )

    def _kept(self, learned: Irrelevant) -> Ints:
        """Return [num_observations] equal where the same is kept; 0 where nothing is."""
        reader = Reader(learned)
        code_of: dict[tuple[str, ...], int] = {(): 0}
        codes = [code_of.setdefault(reader.keep(own), len(code_of)) for own in self.texts]
        return np.array(codes, np.int64)[self.observations.node]

    def _places(self, rules: Sequence[NoiseRule], kept: Ints) -> dict[Place, bool]:
        result: dict[Place, bool] = {}
        for level in range(NUM_LEVELS):
            nodes = self.observations.node.tolist()
            sightings, places, kinds = sightings_at(level, self.texts, nodes)
            statistics = PlaceStatistics(sightings, self.observations, kept, self.mentioned)
            verdicts = _verdicts(rules, statistics, kinds)
            result = _named(places, verdicts) | result
        return result

    def _present(
        self, features: Sequence[set[Any]], rules: Sequence[NoiseRule], kept: Ints
    ) -> dict[Any, bool]:
        of = self.observations
        sightings, names, lasting = presence(features, of)
        statistics = PresenceStatistics(sightings, of, kept, self.mentioned)
        verdicts = _named(names, _verdicts(rules, statistics, [LINES] * len(names)))
        return dict.fromkeys(lasting, False) | verdicts


def _named(names: Sequence[_Key], verdicts: Ints) -> dict[_Key, bool]:
    return {
        name: verdict > 0 for name, verdict in zip(names, verdicts.tolist(), strict=True) if verdict
    }


def _verdicts(
    rules: Sequence[NoiseRule], statistics: PlaceStatistics, kinds: Sequence[str]
) -> Ints:
    """Return 1 for what is irrelevant, -1 for a part of the state, 0 where nothing is known."""
    kind = np.array(kinds, np.str_)
    agreeing, pairs = statistics.within
    # What is the same everywhere says nothing of itself, and nothing against its line.
    tells = statistics.between[0] < statistics.between[1]
    verdict = np.where(tells & (pairs >= AGREEING) & (agreeing == pairs), -1, 0)
    is_open = np.ones(len(kind), np.bool_)
    for rule in rules:
        is_meant = is_open & np.isin(kind, list(rule.kinds))
        if not is_meant.any():
            continue
        shown = is_meant & np.logical_or.reduce([test(statistics) for test in rule.evidence])
        vetoed = shown & np.logical_or.reduce(
            [np.zeros_like(shown), *(test(statistics) for test in rule.vetoes)]
        )
        verdict[shown] = np.where(vetoed, -1, 1)[shown]
        is_open &= ~shown
    return verdict
