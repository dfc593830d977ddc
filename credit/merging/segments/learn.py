"""Learns from visits that are certainly of one state what their texts may differ in."""

from dataclasses import replace

import numpy as np

from graphcredit.credit.merging.segments.looks.invalid import invalid_actions_move
from graphcredit.credit.merging.segments.looks.sample import SampledGroups
from graphcredit.credit.merging.segments.noise.evidence import gather
from graphcredit.credit.merging.segments.noise.garbled import learn_garbled
from graphcredit.credit.merging.segments.noise.idle.learn import learn_idle
from graphcredit.credit.merging.segments.noise.layout import learn_layout
from graphcredit.credit.merging.segments.noise.passing import Judge
from graphcredit.credit.merging.segments.noise.refuted import refuted
from graphcredit.credit.merging.segments.noise.repeats import learn_repeats
from graphcredit.credit.merging.segments.noise.slots import learn_slots
from graphcredit.credit.merging.segments.noise.structure import (
    learn_breaks,
    loose_fields,
    order_changes,
)
from graphcredit.credit.merging.segments.noise.typos import learn_typos
from graphcredit.credit.merging.segments.noise.words import learn_words
from graphcredit.credit.merging.segments.rules import NoiseRules
from graphcredit.credit.merging.segments.text.parse import Segment
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.steps.arrays import Ints

_ROUNDS = 6
"""Phrases that stand beside each other are found one after the other."""


def learn(sample: SampledGroups) -> NoiseRules:
    """Return what the sample shows."""
    moves = invalid_actions_move(sample.texts, sample.visits)
    if moves:
        sample = replace(sample, visits=sample.visits.if_invalid_actions_move())
    visits = sample.visits
    rules = NoiseRules(invalid_moves=moves, breaks=learn_breaks(sample))
    parsed = _parsed(sample, rules)
    rules = replace(rules, loose_fields=loose_fields(parsed, visits))
    rules = replace(rules, garbled=learn_garbled(parsed, visits))
    parsed = parsed.map(rules.as_words)
    rules = replace(rules, slots=learn_slots(parsed, visits, sample.actions))
    is_clean = not (sample.has_noise or any(rules.slots.is_noise.values()))
    if is_clean:
        return _of_clean_texts(sample)
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
    parsed = without_noise(rules, _parsed(sample, rules), sample)
    return _but_refuted(_finish(rules, parsed, sample), sample)


def _parsed(sample: SampledGroups, rules: NoiseRules) -> Parsed:
    return Parsed.of(map(rules.breaks.joined, sample.texts))


def _refuted(rules: NoiseRules, sample: SampledGroups) -> frozenset[Segment]:
    """Return the segments that outcomes speak for, as they are read."""
    raw = _parsed(sample, rules)
    parsed = corrected(rules, raw.map(rules.before_words), sample).map(rules.after_typos)
    is_noise = rules.noise_in(parsed, sample.visits)
    left = rules.repeats.once(parsed.without(is_noise))
    rest = left.identities(rules.any_order)[sample.visits.node]
    return refuted(raw, sample.visits, rules.base, rules.read, rest, parsed.without(~is_noise))


def _but_refuted(rules: NoiseRules, sample: SampledGroups) -> NoiseRules:
    """Return the rules, but for what outcomes speak against."""
    for _ in range(_ROUNDS):
        kept = rules.kept | _refuted(rules, sample)
        if kept == rules.kept:
            break
        rules = replace(rules, kept=kept)
    return rules


def _of_clean_texts(sample: SampledGroups) -> NoiseRules:
    """Return the rules of a log that has no noise, but perhaps echoes, or lines at some times."""
    rules = _finish(NoiseRules(finds_noise=True), Parsed.of(sample.texts), sample)
    has_noise = rules.idle.drops_echoes or rules.judge.noise
    return _but_refuted(rules, sample) if has_noise else NoiseRules()


def _finish(rules: NoiseRules, parsed: Parsed, sample: SampledGroups) -> NoiseRules:
    """Add what is learned from texts without noise inside their segments."""
    idle = learn_idle(
        parsed,
        sample,
        lambda part: rules.as_read(rules.before_words(part)),
        lambda left: _identities(left, sample),
    )
    parsed = parsed.map(idle.apply)
    return _of_segments(replace(rules, idle=idle), parsed, sample)[0]


def _identities(parsed: Parsed, sample: SampledGroups) -> Ints:
    rules, left = _of_segments(NoiseRules(), parsed, sample)
    return left.identities(rules.any_order)


def _of_segments(
    rules: NoiseRules, parsed: Parsed, sample: SampledGroups
) -> tuple[NoiseRules, Parsed]:
    """Add what is learned of whole segments; return the texts without noise, too."""
    rules = replace(rules, judge=Judge(gather(parsed, sample.visits)))
    parsed = parsed.without(rules.judge.noise_in(parsed, sample.visits))
    rules = replace(rules, repeats=learn_repeats(parsed, sample.visits))
    parsed = rules.repeats.once(parsed)
    return replace(rules, any_order=order_changes(parsed, sample.visits)), parsed


def without_noise(rules: NoiseRules, parsed: Parsed, sample: SampledGroups) -> Parsed:
    """Return the texts of a sample as the rules leave them, but for segments that come and go."""
    parsed = corrected(rules, parsed.map(rules.before_words), sample)
    return parsed.map(rules.as_read)


def corrected(rules: NoiseRules, parsed: Parsed, sample: SampledGroups) -> Parsed:
    """Return the texts of a sample without typing errors."""
    visits = sample.visits
    group = np.zeros(parsed.num_texts, np.int64)
    group[visits.node] = visits.group
    weight = np.bincount(visits.node, minlength=parsed.num_texts)
    actions = [sample.actions] * (int(group.max(initial=-1)) + 1)
    return rules.corrected(parsed, group, weight, actions)
