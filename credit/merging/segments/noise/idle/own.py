"""Values that a rollout has of its own, or that last, in their frame: first names, weather.

Such a value is claimed to be idle by how it comes about:

- a word or a typed token, or two or three, which the rollout keeps to its end, or
- words that last for longer than chance, and come and go by themselves, under several actions;
- both stand in no action, and few of them anywhere else in the texts; no action changes them more
  often than others do, and success does not depend on them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import numpy as np

from graphcredit.credit.merging.segments.counts.changes import Changes
from graphcredit.credit.merging.segments.counts.tally import ValueCounts, observe
from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.noise.idle.claims import Claims
from graphcredit.credit.merging.segments.noise.idle.frames import Frame, FrameIndex
from graphcredit.credit.merging.segments.text.parse import Segment
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.merging.segments.text.tokens import SLOT, Tokens, is_word, kind_of
from graphcredit.credit.steps.arrays import Bools, Floats, factorise_pairs

_LONGEST = 60
"""Tokens of a segment in which values are looked for."""
_LEAST_CHANGES = 5
_LEAST_ACTIONS = 3
"""So many changes, under so many actions, show that a value changes by itself."""
_BACK = 0.3
"""Share of the changes that go back: what only goes on is progress."""
_DEVIATIONS = 3.0
"""By so many standard deviations may an action change a value more often than others."""
_FOREIGN = 0.5
"""Share of the values whose words stand nowhere else in the texts."""

_Where = dict[Tokens, list[int]]
"""Values of one frame, with the segments that have each."""


def own_values(
    parsed: Parsed, visits: Visits, used: frozenset[str], judged: Iterable[Frame], length: int
) -> Claims[Frame]:
    """Claim values of some length.

    Args:
        parsed: The texts of the nodes.
        visits: All visits of these nodes.
        used: Tokens of actions, which no value may have.
        judged: Frames that were judged before: their segments are left alone.
        length: Tokens of a value.
    """
    spans = _places(parsed, used, FrameIndex(frozenset(judged)), length)
    counts = observe(parsed, visits, _of_segment(parsed, spans), len(spans))
    is_words = np.array(
        [all(map(is_word, (t for span in own for t in span))) for own in spans.values()], np.bool_
    )
    seem_idle = _seem_idle(counts, is_words).tolist()
    chosen = [item for item, is_so in zip(spans.items(), seem_idle, strict=True) if is_so]
    found = _foreign(parsed, dict(sorted(chosen)))
    return Claims(
        things=list(found),
        of_segment=_of_segment(parsed, found),
        without=lambda frames: FrameIndex(frozenset(frames)),
    )


def _places(
    parsed: Parsed, used: frozenset[str], judged: FrameIndex, length: int
) -> dict[Frame, _Where]:
    """Return the frames with two values or more, none of them a token of an action."""
    spans: dict[Frame, _Where] = defaultdict(dict)
    for code in np.unique(parsed.segment).tolist():
        part = parsed.segments[code]
        if len(part.tokens) <= _LONGEST and not judged.in_segment(part):
            for frame, span in _spans(part, length):
                spans[frame].setdefault(span, []).append(code)
    return {
        frame: own
        for frame, own in spans.items()
        if len(own) > 1 and used.isdisjoint(token for span in own for token in span)
    }


def _of_segment(parsed: Parsed, spans: dict[Frame, _Where]) -> list[list[tuple[int, str]]]:
    """Return [num_segments] the numbers of the frames that a segment has, with their values."""
    found: list[list[tuple[int, str]]] = [[] for _ in parsed.segments]
    for key, own in enumerate(spans.values()):
        for span, where in own.items():
            for code in where:
                found[code].append((key, " ".join(span)))
    return found


def _spans(part: Segment, length: int) -> Iterator[tuple[Frame, Tokens]]:
    """Yield each run of words and typed tokens, in its frame."""
    tokens = part.tokens
    may_vary = [token != SLOT and (is_word(token) or bool(kind_of(token))) for token in tokens]
    for start in range(len(tokens) - length + 1):
        stop = start + length
        if all(may_vary[start:stop]) and (part.address or len(tokens) > length):
            yield Frame(part.address, tokens[:start], tokens[stop:], length), tokens[start:stop]


def _seem_idle(counts: ValueCounts, is_words: Bools) -> Bools:
    """Return [num_keys] whether values stay or last, and neither actions nor success say why."""
    num_keys = len(is_words)
    is_own = (counts.restless == 0) & (counts.apart > 0)
    lasts = is_words & counts.is_sticky & _changes_by_itself(counts.changes, num_keys)
    return (is_own | lasts) & ~(counts.is_driven | counts.decides)


def _changes_by_itself(changes: Changes, num_keys: int) -> Bools:
    """Return [num_keys] whether values come and go under several actions, and none too often."""
    number = np.bincount(changes.key, minlength=num_keys)
    changed = np.bincount(changes.key, changes.differs, num_keys)
    cell, key, _ = factorise_pairs(changes.key, changes.action)
    tried, done = np.bincount(cell), np.bincount(cell, changes.differs, len(key))
    expected = tried * (changed / np.maximum(number, 1))[key]
    is_suspect = done > expected + _DEVIATIONS * np.sqrt(expected) + 1
    actions = np.bincount(key, done > 0, num_keys)
    suspects = np.bincount(key, is_suspect, num_keys)
    return (
        (changed >= _LEAST_CHANGES)
        & (actions >= _LEAST_ACTIONS)
        & (suspects == 0)
        & (_returns(changes, num_keys) >= _BACK * changed)
    )


def _returns(changes: Changes, num_keys: int) -> Floats:
    """Return [num_keys] changes for which there is another one that goes back."""
    differs = changes.differs
    key, now, then = changes.key[differs], changes.now[differs], changes.then[differs]
    ends, _, _ = factorise_pairs(np.minimum(now, then), np.maximum(now, then))
    pair, owner, _ = factorise_pairs(key, ends)
    up = np.bincount(pair, now < then, len(owner))
    down = np.bincount(pair, now > then, len(owner))
    return np.bincount(owner, 2 * np.minimum(up, down), num_keys).astype(np.float64)


def _foreign(parsed: Parsed, spans: dict[Frame, _Where]) -> dict[Frame, _Where]:
    """Return the frames of which enough values stand nowhere else but in such frames."""
    codes = np.unique(parsed.segment).tolist()
    holders = Counter(token for code in codes for token in set(parsed.segments[code].tokens))
    while True:
        covers: dict[str, set[int]] = defaultdict(set)
        for own in spans.values():
            for span, where in own.items():
                for token in span:
                    covers[token].update(where)
        foreign = {token for token, found in covers.items() if holders[token] == len(found)}
        left = {
            frame: own
            for frame, own in spans.items()
            if sum(foreign.issuperset(span) for span in own) >= _FOREIGN * len(own)
        }
        if len(left) == len(spans):
            return left
        spans = left
