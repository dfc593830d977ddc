"""Learns from visits that are certainly of one state what their texts may differ in."""

from dataclasses import replace

import numpy as np

from graphcredit.credit.merging.segments.align import looks
from graphcredit.credit.merging.segments.evidence import gather
from graphcredit.credit.merging.segments.invalid import invalid_actions_move
from graphcredit.credit.merging.segments.parse import Segment, parse
from graphcredit.credit.merging.segments.parsed import Parsed
from graphcredit.credit.merging.segments.passing import Judge
from graphcredit.credit.merging.segments.rules import NoiseRules, without_layout
from graphcredit.credit.merging.segments.sample import SampledGroups
from graphcredit.credit.merging.segments.slots import learn_slots
from graphcredit.credit.merging.segments.tokens import Tokens
from graphcredit.credit.merging.segments.typos import learn_typos
from graphcredit.credit.merging.segments.visits import Visits
from graphcredit.credit.merging.segments.words import learn_words

_ROUNDS = 6
"""Phrases that stand beside each other are found one after the other."""
_SEVERAL = 3
_LEAST = 2
"""In so many states a layout or an order must be seen to change."""


def learn(sample: SampledGroups) -> NoiseRules:
    """Return what the sample shows."""
    moves = invalid_actions_move(sample.texts, sample.visits)
    if moves:
        sample = replace(sample, visits=sample.visits.if_invalid_actions_move())
    visits = sample.visits
    rules = NoiseRules(invalid_moves=moves, joined=_breaks_change(sample))
    parsed = Parsed.of(sample.texts, rules.joined)
    rules = replace(rules, slots=learn_slots(parsed, visits))
    if not (sample.has_noise or any(rules.slots.is_noise.values())):
        return NoiseRules()
    rules = replace(rules, finds_noise=True)
    parsed = parsed.map(rules.slots.apply)
    if _layout_changes(parsed, visits):
        rules = replace(rules, no_layout=True)
        parsed = parsed.map(without_layout)
    # What comes and goes is no version of anything.
    parsed = parsed.without(Judge(gather(parsed, visits)).noise_in(parsed, visits))
    rules = replace(rules, typos=learn_typos(parsed, visits, sample.actions))
    parsed = corrected(rules, parsed, sample)
    for _ in range(_ROUNDS):
        found = learn_words(parsed, visits)
        if not found.lengths:
            break
        rules = replace(rules, words=(*rules.words, found))
        parsed = parsed.map(found.apply)
    parsed = without_noise(rules, Parsed.of(sample.texts, rules.joined), sample)
    rules = replace(rules, judge=Judge(gather(parsed, visits)))
    parsed = parsed.without(rules.judge.noise_in(parsed, visits))
    return replace(rules, any_order=_order_changes(parsed, visits))


def without_noise(rules: NoiseRules, parsed: Parsed, sample: SampledGroups) -> Parsed:
    """Return the texts of a sample as the rules leave them, but for segments that come and go."""
    parsed = corrected(rules, parsed.map(rules.before_words), sample)
    return parsed.map(rules.after_typos)


def corrected(rules: NoiseRules, parsed: Parsed, sample: SampledGroups) -> Parsed:
    """Return the texts of a sample without typing errors."""
    visits = sample.visits
    group = np.zeros(parsed.num_texts, np.int64)
    group[visits.node] = visits.group
    weight = np.bincount(visits.node, minlength=parsed.num_texts)
    actions = [sample.actions] * (int(group.max(initial=-1)) + 1)
    return rules.corrected(parsed, group, weight, actions)


def _breaks_change(sample: SampledGroups) -> bool:
    """Return whether looks at one state have the same words on other lines."""
    squashed = ["".join(text.split()) for text in sample.texts]
    found = 0
    for _, nodes in looks(sample.visits):
        first = {squashed[node]: node for node in reversed(nodes)}
        found += any(
            _sentences(sample.texts[node]) != _sentences(sample.texts[first[squashed[node]]])
            for node in nodes
        )
    return found >= _LEAST


def _sentences(text: str) -> list[Tokens]:
    """Return the tokens of the segments of a text, without punctuation and gaps."""
    return [without_layout(part).tokens for part in parse(text)]


def _layout_changes(parsed: Parsed, visits: Visits) -> bool:
    """Return whether looks at one state have segments that differ in punctuation and gaps only."""
    lists = parsed.lists()
    bare = [without_layout(part) for part in parsed.segments]
    found = 0
    for _, nodes in looks(visits):
        forms: dict[Segment, list[int]] = {}
        for node in nodes:
            for code in set(lists[node]):
                forms.setdefault(bare[code], []).append(code)
        # Two versions of an advertisement may meet, but not in many looks at one state.
        found += len(nodes) >= _SEVERAL and any(
            len(codes) == len(nodes) and len(set(codes)) > 1 for codes in forms.values()
        )
    return found >= _LEAST


def _order_changes(parsed: Parsed, visits: Visits) -> bool:
    """Return whether looks at one state have the same segments in another order."""
    lists = parsed.lists()
    found = 0
    for _, nodes in looks(visits):
        orders = {tuple(lists[node]) for node in nodes}
        found += len({tuple(sorted(order)) for order in orders}) < len(orders)
    return found >= _LEAST
