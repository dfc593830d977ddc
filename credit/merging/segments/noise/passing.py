"""Segments that come and go while the state stays: advertisements, hints, greetings.

A segment is noise if it came and went in more classes of certainly equal states than it stayed in,
or as often as if these classes made no difference, or at the same times in all rollouts of a group.
It is none if some actions bring it or take it away, and it stays in between. A class does not count
where another version of the segment stands in its place. One that no class shows is judged by its
words and by whether it recurs in its group:

    score = Σ over its words of log((n + p) / (N + 1)) − log((m + p) / (M + 1))
            + log(a / b) if no other visit of the group has it

n of the N words of noise segments and m of the M words of the others are this one, p is its share
of all of them; digits count as 0, and words of one segment only as one unknown word. a is how many
segments that come and go and that no other visit has are in a visit of a class of two or more, and
b how many more such segments other visits have. It is noise if the score exceeds log 20, and half
of its words are those of one segment that was seen to come and go: one by one, the words of free
text are in all that is said.
"""

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.noise.evidence import (
    LEAST_CLASSES,
    SOUND,
    UNKNOWN,
    Evidence,
    masked,
    weights,
)
from graphcredit.credit.merging.segments.text.parse import Segment
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.merging.segments.text.resemblance import Resemblance
from graphcredit.credit.steps.arrays import Bools, Floats, Ints

_LEAST_SCORE = math.log(20)
"""How much likelier than not a segment without evidence must be noise."""

_LASTING = 0.4
"""How often a part of a state is there at the next visit, too."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Recurrence:
    """How often the segments of a group are seen again there."""

    key: Ints
    """[n] group · number of segments + segment, ascending."""
    is_once: Bools
    """[n] whether one visit has it."""
    lasting: Floats
    """[n] how much likelier a part of a state stays as often from one visit to the next."""

    @classmethod
    def count(cls, parsed: Parsed, visits: Visits) -> "_Recurrence":
        visit, segment = parsed.of_visits(visits.node)
        num_segments = max(len(parsed.segments), 1)
        order = np.lexsort((visits.index, visits.trajectory))
        place = np.empty(len(order), np.int64)
        # Trajectories have a gap between them: the last visit of one is before no other.
        place[order] = np.arange(len(order)) + visits.trajectory[order]
        here = place[visit] * num_segments + segment
        follows = np.isin(here + num_segments, here)
        key, of_key = np.unique(visits.group[visit] * num_segments + segment, return_inverse=True)
        number = np.bincount(of_key, minlength=len(key))
        share = number / np.bincount(visits.group)[key // num_segments]
        stays = np.bincount(of_key, follows, len(key))
        lasting = (stays * np.log(np.maximum(_LASTING / share, 1))).astype(np.float64)
        return cls(key=key, is_once=number == 1, lasting=lasting)


class Judge:
    """Says of segments whether they are noise."""

    def __init__(self, evidence: Evidence) -> None:
        self._comes = {
            part
            for part, number in evidence.comes.items()
            if number > evidence.stays[part] or (part in evidence.drawn and number >= LEAST_CLASSES)
        }
        self._comes = (self._comes | evidence.timed) - evidence.brought
        self._stays = {part for part in evidence.stays if part not in self._comes} | {
            part for part in evidence.comes if part not in self._comes
        }
        names = sorted({*evidence.stays, *evidence.comes})
        segments_of_word = Counter(word for part in names for word in set(masked(part)))
        self._known = {word for word, number in segments_of_word.items() if number > 1}
        self._noise, self._signal = Counter[str](), Counter[str]()
        for part in names:
            (self._noise if part in self._comes else self._signal).update(self._words(part))
        self._num_noise, self._num_signal = self._noise.total(), self._signal.total()
        self._known_noise = Resemblance([self._words(part) for part in sorted(self._comes)])
        self._lonely_score = _lonely_score(evidence)

    @property
    def noise(self) -> list[Segment]:
        """Segments that were seen to come and go."""
        return sorted(self._comes)

    def knows(self, part: Segment) -> bool:
        """Return whether certain looks at a state show that a segment stays there, or does not."""
        return part in self._comes or part in self._stays

    def noise_in(self, parsed: Parsed, visits: Visits) -> Bools:
        """Return [num_pairs] which of the texts' segments are noise.

        Args:
            parsed: The texts of the nodes of whole groups.
            visits: All visits of these nodes.
        """
        if not self._comes:
            return np.zeros(len(parsed.segment), bool)
        num_segments = max(len(parsed.segments), 1)
        group_of_text = np.zeros(parsed.num_texts, np.int64)
        group_of_text[visits.node] = visits.group
        recurrence = _Recurrence.count(parsed, visits)
        place = np.searchsorted(
            recurrence.key, group_of_text[parsed.text] * num_segments + parsed.segment
        )
        # A text that no visit shows, of a goal, has no place there.
        place = np.minimum(place, len(recurrence.key) - 1)
        score = self.scores(parsed.segments)[parsed.segment] - recurrence.lasting[place]
        score[recurrence.is_once[place]] += self._lonely_score
        is_noise = score > _LEAST_SCORE
        is_noise[is_noise] = self._resembles_noise(parsed, parsed.segment[is_noise])
        # Where next to nothing would be left, the text is no state with noise in it.
        weight = weights(parsed)[parsed.segment]
        size = np.bincount(parsed.text, weight, parsed.num_texts)
        dropped = np.bincount(parsed.text, weight * is_noise, parsed.num_texts)
        is_sound = size - dropped >= SOUND * size
        return is_noise & is_sound[parsed.text]

    def _resembles_noise(self, parsed: Parsed, codes: Ints) -> Bools:
        """Return [n] which segments, from [n] codes, have the words of one that comes and goes."""
        distinct, of = np.unique(codes, return_inverse=True)
        parts = (parsed.segments[code] for code in distinct.tolist())
        found = [
            part in self._comes or self._known_noise.resembles(self._words(part)) for part in parts
        ]
        return np.array(found, np.bool_)[of]

    def scores(self, parts: list[Segment]) -> Floats:
        """Return [len(parts)] the score of each, if it recurs in its group.

        That of a segment that classes show is infinite.
        """
        return np.array([self._verdict(part) for part in parts], np.float64)

    def _verdict(self, part: Segment) -> float:
        if part in self._comes:
            return math.inf
        return -math.inf if part in self._stays or not self._comes else self._score(part)

    def _score(self, part: Segment) -> float:
        score = 0.0
        for word in self._words(part):
            noise, signal = self._noise[word], self._signal[word]
            share = (noise + signal) / (self._num_noise + self._num_signal)
            if share:
                score += math.log((noise + share) / (self._num_noise + 1))
                score -= math.log((signal + share) / (self._num_signal + 1))
        return score

    def _words(self, part: Segment) -> list[str]:
        return [word if word in self._known else UNKNOWN for word in masked(part)]


def _lonely_score(evidence: Evidence) -> float:
    noise = (evidence.num_shared_lonely + 0.5) / (evidence.num_shared + 1)
    everything = evidence.num_single_lonely / max(evidence.num_single, 1)
    return math.log(noise / max(everything - noise, noise / 20))
