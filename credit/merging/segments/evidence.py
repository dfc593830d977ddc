"""Which segments say something of a state, and which come and go: counts, and the verdict on them.

A segment that classes of certainly equal states show (`cut.py`) is noise if it came and went
in more of them than it stayed in, or if it says how many steps were taken and nothing else.

One that they do not show is judged by its words and by whether it recurs in its group:

    score = Σ over its words of log((n + p) / (N + 1)) − log((m + p) / (M + 1))
            + log(a / b) if no other visit of the group has it

n of the N words of noise segments and m of the M words of the others are this one, p is its share
of all of them; digits count as 0, and words of one segment only as one unknown word. a is how many
segments that come and go and that no other visit has are in a visit of a class of two or more, and
b how many more such segments other visits have. It is noise if the score exceeds log 20.
"""

import math
import re
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from graphcredit.credit.merging.segments.cut import Segmented, Visits
from graphcredit.credit.steps.arrays import Bools, Floats, Ints, factorise_pairs

_NUMBER = re.compile(r"\w*\d\w*")
_UNKNOWN = "\0"
_LEAST_SCORE = math.log(20)
"""How much likelier than not a segment without evidence must be noise."""

_LEAST_INDICES = 3
"""At so many steps a counter must have been seen."""


@dataclass(kw_only=True, slots=True)
class Evidence:
    """What the visits of an iteration show; parts are added in any order."""

    stays: Counter[str] = field(default_factory=Counter[str])
    """Classes of two or more visits that all have the segment."""
    comes: Counter[str] = field(default_factory=Counter[str])
    """Classes of which some visits have it and some have not."""
    clocks: dict[str, dict[int, set[str]]] = field(default_factory=dict[str, dict[int, set[str]]])
    """Segment with numbers left out, to the steps taken before, to the segments then seen."""
    num_shared: int = 0
    """Visits in classes of two or more."""
    num_shared_lonely: int = 0
    """Segments there that no other visit of the group has."""
    num_single: int = 0
    """Other visits."""
    num_single_lonely: int = 0
    """Segments there that no other visit of the group has."""

    def add(self, segmented: Segmented, visits: Visits) -> None:
        """Count the visits of some whole groups, whose nodes are the texts that were cut."""
        visit, segment = segmented.of(visits.node)
        _, code, stays = _segments_of_classes(visits.certain, visit, segment)
        for counter, rows in ((self.stays, stays), (self.comes, ~stays)):
            number = np.bincount(code[rows], minlength=len(segmented.names))
            for position in np.flatnonzero(number).tolist():
                counter[segmented.names[position]] += int(number[position])
        is_shared = np.bincount(visits.certain)[visits.certain] > 1
        in_class = is_shared[visit]
        self._add_clocks(segmented.names, visits.index[visit], segment)
        is_lonely = lonely(visits.group[visit], segment)
        self.num_shared += int(is_shared.sum())
        self.num_shared_lonely += int((is_lonely & in_class).sum())
        self.num_single += int((~is_shared).sum())
        self.num_single_lonely += int((is_lonely & ~in_class).sum())

    def _add_clocks(self, names: list[str], index: Ints, segment: Ints) -> None:
        has_number = np.array([_NUMBER.search(name) is not None for name in names], bool)
        counted = has_number[segment]
        _, steps, codes = factorise_pairs(index[counted], segment[counted])
        for step, code in zip(steps.tolist(), codes.tolist(), strict=True):
            seen = self.clocks.setdefault(_NUMBER.sub("0", names[code]), {}).setdefault(step, set())
            # Two are enough to see that it is no counter.
            if len(seen) < 2:
                seen.add(names[code])


def lonely(group: Ints, segment: Ints) -> Bools:
    """Return which (group, segment) pairs are there once. [n], from two arrays [n]."""
    pair, _, _ = factorise_pairs(group, segment)
    return np.bincount(pair)[pair] == 1


def _segments_of_classes(of_class: Ints, visit: Ints, segment: Ints) -> tuple[Ints, Ints, Bools]:
    """Return the segments of each class of two or more visits.

    Args:
        of_class: [num_visits] the class of each visit.
        visit: [n] visits, with `segment` from `Segmented.of`: a visit has a segment once.
        segment: [n] segments that they have.

    Returns:
        A class, a segment that any of its visits has, and whether all of them have it.
    """
    size = np.bincount(of_class)
    in_class = size[of_class[visit]] > 1
    pair, owner, code = factorise_pairs(of_class[visit[in_class]], segment[in_class])
    return owner, code, np.bincount(pair, minlength=len(owner)) == size[owner]


def revise(
    segmented: Segmented, visits: Visits, of_class: Ints, is_noise: Bools, balance: Floats
) -> Bools:
    """Return [num_pairs] which segments are noise, after a look at further classes.

    Args:
        segmented: The texts of the nodes of whole groups.
        visits: All visits of these nodes.
        of_class: [num_visits] equal where the state was the same.
        is_noise: [num_pairs] the verdict so far.
        balance: [num_segments] what the iteration says, from `Judge.balance`; the classes add to it
            in their group.
    """
    owner, code, stays = _segments_of_classes(of_class, *segmented.of(visits.node))
    group_of_class = np.zeros(int(of_class.max(initial=-1)) + 1, np.int64)
    group_of_class[of_class] = visits.group
    group_of_text = np.zeros(segmented.num_texts, np.int64)
    group_of_text[visits.node] = visits.group
    # These classes rest on states that were found, not on certain ones, so they speak for their
    # group alone. The pairs (group, segment) of classes and of texts get common numbers, by which
    # the texts look up what the classes of their group say.
    pair, pair_group, _ = factorise_pairs(
        np.concatenate([group_of_class[owner], group_of_text[segmented.text]]),
        np.concatenate([code, segmented.segment]),
    )
    shown, of_text = np.split(pair, [len(owner)])
    # As in `balance`: a class in which the segment comes and goes counts 1, one in which it stays
    # -1. A segment that no class of the group shows keeps its verdict.
    added = np.bincount(shown, np.where(stays, -1.0, 1.0), len(pair_group))
    is_shown = np.bincount(shown, minlength=len(pair_group)) > 0
    total = balance[segmented.segment] + added[of_text]
    return np.where(is_shown[of_text], total > 0, is_noise)


class Judge:
    """Says of segments whether they are noise."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._clocks = {mask for mask, seen in evidence.clocks.items() if _is_clock(seen)}
        names = sorted(evidence.stays.keys() | evidence.comes.keys())
        segments_of_word = Counter(word for name in names for word in set(_masked(name)))
        self._known = {word for word, number in segments_of_word.items() if number > 1}
        self._noise, self._signal = Counter[str](), Counter[str]()
        for name in names:
            is_noise = evidence.comes[name] > evidence.stays[name]
            (self._noise if is_noise else self._signal).update(self._words(name))
        self._num_noise, self._num_signal = self._noise.total(), self._signal.total()
        self._lonely_score = _lonely_score(evidence)

    def noise_in(self, segmented: Segmented, visits: Visits) -> Bools:
        """Return [num_pairs] which of the texts' segments are noise.

        Args:
            segmented: The texts of the nodes of whole groups.
            visits: All visits of these nodes.
        """
        visit, segment = segmented.of(visits.node)
        is_lonely = lonely(visits.group[visit], segment)
        num_segments = max(len(segmented.names), 1)
        once_key = visits.node[visit[is_lonely]] * num_segments + segment[is_lonely]
        is_once = np.isin(segmented.text * num_segments + segmented.segment, once_key)
        recurring, once = self.verdicts(segmented.names)
        return np.where(is_once, once[segmented.segment], recurring[segmented.segment])

    def balance(self, names: list[str]) -> Floats:
        """Return [num_names] in how many more classes a segment comes and goes than it stays."""
        evidence = self._evidence
        return np.array(
            [
                math.inf if self._is_clock(name) else evidence.comes[name] - evidence.stays[name]
                for name in names
            ],
            np.float64,
        )

    def _is_clock(self, name: str) -> bool:
        return bool(self._clocks) and _NUMBER.sub("0", name) in self._clocks

    def verdicts(self, names: list[str]) -> tuple[Bools, Bools]:
        """Return [len(names)] whether each is noise if it recurs in its group, and if it does not.

        A segment that classes show, or a counter, is judged alike in both.
        """
        recurring, once = np.zeros(len(names), bool), np.zeros(len(names), bool)
        for position, name in enumerate(names):
            comes, stays = self._evidence.comes[name], self._evidence.stays[name]
            if self._is_clock(name):
                recurring[position] = once[position] = True
            elif comes or stays:
                recurring[position] = once[position] = comes > stays
            elif self._num_noise:
                score = self._score(name)
                recurring[position] = score > _LEAST_SCORE
                once[position] = score + self._lonely_score > _LEAST_SCORE
        return recurring, once

    def _score(self, name: str) -> float:
        score = 0.0
        for word in self._words(name):
            noise, signal = self._noise[word], self._signal[word]
            share = (noise + signal) / (self._num_noise + self._num_signal)
            if share:
                score += math.log((noise + share) / (self._num_noise + 1))
                score -= math.log((signal + share) / (self._num_signal + 1))
        return score

    def _words(self, name: str) -> list[str]:
        return [word if word in self._known else _UNKNOWN for word in _masked(name)]


def _is_clock(seen: dict[int, set[str]]) -> bool:
    names = [name for names in seen.values() for name in names]
    return len(seen) >= _LEAST_INDICES and len(names) == len(seen) == len(set(names))


def _lonely_score(evidence: Evidence) -> float:
    noise = (evidence.num_shared_lonely + 0.5) / (evidence.num_shared + 1)
    everything = evidence.num_single_lonely / max(evidence.num_single, 1)
    return math.log(noise / max(everything - noise, noise / 20))


def _masked(name: str) -> list[str]:
    return [_NUMBER.sub("0", word) for word in name.split()]
