"""The merge `segments`: texts that are equal but for noise are one state."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from graphcredit.credit.merging.admissible import UNKNOWN, unite
from graphcredit.credit.merging.candidates import Candidates, Union
from graphcredit.credit.merging.recognise import Identities
from graphcredit.credit.merging.segments.compare import SameSegments, written
from graphcredit.credit.merging.segments.learn import learn
from graphcredit.credit.merging.segments.looks.sample import take_sample
from graphcredit.credit.merging.segments.looks.visits import visits_of
from graphcredit.credit.merging.segments.rules import NoiseRules
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.merging.segments.undecided import count_undecided
from graphcredit.credit.steps.arrays import factorise_pairs
from graphcredit.credit.steps.nodes import merge_nodes


@dataclass(frozen=True, kw_only=True, slots=True)
class SegmentUnion(Union):
    """States, and what is left of the texts of the candidates."""

    parsed: Parsed
    """Without noise."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SegmentMerge:
    """Merges the nodes whose texts are the same, but for noise."""

    rules: NoiseRules = field(default_factory=NoiseRules)
    """What the iteration shows, once it has learned."""

    def learn(self, batches: Iterable[Candidates]) -> "SegmentMerge":
        """Return the merge that knows what texts of one state differ in."""
        return SegmentMerge(rules=learn(take_sample(batches)))

    def unite(self, found: Candidates) -> SegmentUnion:
        """Return the groups of candidates with one text, but for noise."""
        parsed = self._without_noise(found)
        if not self.rules.finds_noise:
            return SegmentUnion(nodes=found.nodes, num_refused=0, parsed=parsed)
        identity = parsed.identities(self.rules.any_order)
        label, num_refused = unite(found.keys(identity), found.signature_of(found.nodes))
        return SegmentUnion(
            nodes=merge_nodes(found.nodes, label),
            num_refused=num_refused,
            num_undecided=self._num_undecided(found, parsed),
            known_to_last=self.rules.idle_words,
            parsed=parsed,
        )

    def recognise(self, found: Candidates, union: SegmentUnion) -> Identities:
        """Return what is left of the normal forms without noise."""
        texts = written(union.parsed, self.rules.any_order)
        return found.identities(union.nodes, texts, SameSegments(rules=self.rules))

    def _num_undecided(self, found: Candidates, parsed: Parsed) -> int:
        """Return how many pairs of states may be one: nothing is known of what they differ in."""
        nodes = found.nodes
        is_known = np.array([self.rules.knows(part) for part in parsed.segments], np.bool_)
        place, _, _ = factorise_pairs(nodes.group_of_node, found.signature_of(nodes) - UNKNOWN)
        # A goal has the text of any state, and is none.
        is_goal = nodes.text_of_node < 0
        place[is_goal] = len(place) + np.flatnonzero(is_goal)
        return count_undecided(parsed, place, is_known)

    def _without_noise(self, found: Candidates) -> Parsed:
        rules, group = self.rules, found.nodes.group_of_node
        visits = visits_of(found.steps, found.nodes, found.marks())
        if rules.invalid_moves:
            visits = visits.if_invalid_actions_move()
        parsed = Parsed.of(map(rules.breaks.joined, found.texts()))
        if not rules.finds_noise:
            return parsed
        parsed = parsed.map(rules.before_words)
        if rules.typos.sorts:
            weight = np.bincount(visits.node, minlength=parsed.num_texts)
            parsed = rules.corrected(parsed, group, weight, _actions(found))
        parsed = parsed.map(rules.after_typos)
        return rules.repeats.once(parsed.without(rules.noise_in(parsed, visits)))


def _actions(found: Candidates) -> list[list[str]]:
    """Return what was done in each group."""
    names = found.steps.action_texts.to_pylist()
    result: list[list[str]] = [[] for _ in found.nodes.goal_of_group]
    _, group, action = factorise_pairs(found.nodes.group_of_step, found.steps.action)
    for number, code in zip(group.tolist(), action.tolist(), strict=True):
        result[number].append(names[code])
    return result
