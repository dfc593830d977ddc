"""Learns from visits that are certainly of one state what their texts may differ in."""

from dataclasses import replace

import numpy as np

from graphcredit.credit.merging.segments.looks.invalid import invalid_actions_move
from graphcredit.credit.merging.segments.looks.sample import SampledGroups
from graphcredit.credit.merging.segments.noise.evidence import gather
from graphcredit.credit.merging.segments.noise.garbled import learn_garbled
from graphcredit.credit.merging.segments.noise.layout import learn_layout
from graphcredit.credit.merging.segments.noise.passing import Judge
from graphcredit.credit.merging.segments.noise.repeats import learn_repeats
from graphcredit.credit.merging.segments.noise.slots import learn_slots
from graphcredit.credit.merging.segments.noise.structure import (
    breaks_change,
    loose_fields,
    order_changes,
)
from graphcredit.credit.merging.segments.noise.typos import learn_typos
from graphcredit.credit.merging.segments.noise.words import learn_words
from graphcredit.credit.merging.segments.rules import NoiseRules
from graphcredit.credit.merging.segments.text.parsed import Parsed

_ROUNDS = 6
"""Phrases that stand beside each other are found one after the other."""


def learn(sample: SampledGroups) -> NoiseRules:
    """Return what the sample shows."""
    moves = invalid_actions_move(sample.texts, sample.visits)
    if moves:
        sample = replace(sample, visits=sample.visits.if_invalid_actions_move())
    visits = sample.visits
    rules = NoiseRules(invalid_moves=moves, joined=breaks_change(sample))
    parsed = Parsed.of(sample.texts, rules.joined)
    rules = replace(rules, loose_fields=loose_fields(parsed, visits))
    rules = replace(rules, garbled=learn_garbled(parsed, visits))
    parsed = parsed.map(rules.as_words)
    rules = replace(rules, slots=learn_slots(parsed, visits, sample.actions))
    if not (sample.has_noise or any(rules.slots.is_noise.values())):
        return NoiseRules()
    rules = replace(rules, finds_noise=True)
    parsed = parsed.map(rules.slots.apply)
    rules = replace(rules, layout=learn_layout(parsed, visits))
    parsed = parsed.map(rules.layout.apply)
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
    rules = replace(rules, repeats=learn_repeats(parsed, visits))
    return replace(rules, any_order=order_changes(rules.repeats.once(parsed), visits))


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
