"""Echoes: segments that repeat the action before, such as `> go north`.

What stands there before the first action, such as `The game begins.`, belongs to them.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from graphcredit.credit.merging.segments.looks.sample import SampledGroups
from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.noise.idle.claims import Claims
from graphcredit.credit.merging.segments.noise.idle.frames import Frame, FrameIndex
from graphcredit.credit.merging.segments.text.parse import Segment
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.merging.segments.text.tokens import Tokens, tokenise
from graphcredit.credit.steps.arrays import factorise_pairs

_LEAST = 20
"""Visits that must show an echo."""
_ACTIONS = 3
"""Actions that must be seen in it."""
_GROUPS = 4
"""So many groups must begin with a segment that is never seen later."""
_NO_ACTION = ""
_SHARE = 0.99
"""Share of the later visits with its frame in which the action before must stand."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EchoRules:
    """Drops the segments of some frames."""

    frames: FrameIndex = field(default_factory=FrameIndex)
    opening: Segment | None = None
    """Stands where later an echo does."""

    def apply(self, part: Segment) -> Segment:
        """Return a segment, or an empty one instead of an echo."""
        return Segment("", ()) if part == self.opening or self.frames.in_segment(part) else part


def find_echoes(
    parsed: Parsed, sample: SampledGroups, as_read: Callable[[Segment], Segment]
) -> Claims[Sequence[Frame]]:
    """Claim families of frames in which the action before stands; one of each is there at a time.

    Args:
        parsed: The texts of the nodes.
        sample: The visits of these nodes.
        as_read: Does to an action what was done to the texts.
    """
    visits, following = sample.visits, sample.visits.following
    taken = np.full(len(following), -1)
    goes_on = following >= 0
    taken[following[goes_on]] = visits.taken[goes_on]
    after = np.flatnonzero(taken >= 0)
    said = [as_read(Segment("", tokenise(text))).tokens for text in sample.actions]
    pair, node, action = factorise_pairs(visits.node[after], taken[after])
    lists = parsed.lists()
    number, actions = Counter[Frame](), defaultdict[Frame, set[int]](set)
    times = np.bincount(pair).tolist()
    for own, done, many in zip(node.tolist(), action.tolist(), times, strict=True):
        for code in lists[own]:
            for frame in _frames(parsed.segments[code], said[done]):
                number[frame] += many
                actions[frame].add(done)
    found = [f for f in number if number[f] >= _LEAST and len(actions[f]) >= _ACTIONS]
    shown = _shown(
        found, parsed, np.bincount(visits.node[after], minlength=parsed.num_texts).tolist()
    )
    families = _families([f for f in found if number[f] >= _SHARE * shown[f]], parsed)
    key_of = {frame: key for key, own in enumerate(families) for frame in own}
    index = FrameIndex(frozenset(key_of))
    opening = _opening(parsed, visits) if families else None
    of_segment = [
        [(0, _NO_ACTION)]
        if part == opening
        else [(key_of[frame], " ".join(part.tokens[span])) for frame, span in _closest(index, part)]
        for part in parsed.segments
    ]

    def without(chosen: Sequence[Sequence[Frame]]) -> EchoRules:
        frames = frozenset(frame for own in chosen for frame in own)
        return EchoRules(frames=FrameIndex(frames), opening=opening)

    return Claims(things=families, of_segment=of_segment, without=without)


def _opening(parsed: Parsed, visits: Visits) -> Segment | None:
    """Return the one segment that all trajectories begin with, and that is never seen later."""
    is_first = visits.index == 0
    if len(np.unique(visits.group[is_first])) < _GROUPS:
        return None
    visit, segment = parsed.of_visits(visits.node)
    length = len(parsed.segments)
    at_first = np.bincount(segment[is_first[visit]], minlength=length)
    later = np.bincount(segment[~is_first[visit]], minlength=length)
    found = np.flatnonzero((at_first == is_first.sum()) & (later == 0)).tolist()
    return parsed.segments[found[0]] if len(found) == 1 else None


def _families(frames: list[Frame], parsed: Parsed) -> Sequence[Sequence[Frame]]:
    """Return families of frames of which no text has two."""
    index, texts = FrameIndex(frozenset(frames)), defaultdict[Frame, set[int]](set)
    of_segment = [[frame for frame, _ in _closest(index, part)] for part in parsed.segments]
    for text, own in enumerate(parsed.lists()):
        for frame in {frame for code in own for frame in of_segment[code]}:
            texts[frame].add(text)
    families: list[list[Frame]] = []
    for frame in sorted(frames, key=lambda frame: (-len(texts[frame]), frame)):
        for own in families:
            if all(texts[frame].isdisjoint(texts[other]) for other in own):
                own.append(frame)
                break
        else:
            families.append([frame])
    return families


def _frames(part: Segment, said: Tokens) -> list[Frame]:
    """Return the frames of a segment in which an action stands."""
    tokens, length = part.tokens, len(said)
    if not length or len(tokens) < length or said[0] not in tokens:
        return []
    return [
        Frame(part.address, tokens[:start], tokens[start + length :], 0)
        for start in range(len(tokens) - length + 1)
        if tokens[start : start + length] == said and (part.address or len(tokens) > length)
    ]


def _shown(frames: list[Frame], parsed: Parsed, visits: list[int]) -> Counter[Frame]:
    """Return how many of some visits of each text show each frame, whatever stands in it.

    A segment shows the frame that leaves least open: `I open it.` is `I ◊.`, not `I ◊`.
    """
    index, shown = FrameIndex(frozenset(frames)), Counter[Frame]()
    of_segment = [[frame for frame, _ in _closest(index, part)] for part in parsed.segments]
    for own, times in zip(parsed.lists(), visits, strict=True):
        shown.update(dict.fromkeys({f for code in own for f in of_segment[code]}, times))
    return shown


def _closest(index: FrameIndex, part: Segment) -> list[tuple[Frame, slice]]:
    """Return those of a segment's frames in which the fewest tokens vary, and where."""
    found = index.in_segment(part)
    least = min((span.stop - span.start for _, span in found), default=0)
    return [(frame, span) for frame, span in found if span.stop - span.start == least]
