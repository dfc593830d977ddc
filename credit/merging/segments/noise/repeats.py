"""Whether it says anything how often a segment stands in a text."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from graphcredit.credit.merging.segments.counts.outcomes import dependence_on
from graphcredit.credit.merging.segments.counts.scale import Scale
from graphcredit.credit.merging.segments.counts.tally import tally
from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.text.parse import Segment
from graphcredit.credit.merging.segments.text.parsed import Parsed

_SURE = 6.0
"""So many pairs must be expected to differ for a segment's number to matter if none does."""
_SELDOM = 0.5
"""Share of these from which on it differs too often to matter."""
_PURE = 0.75
"""Share of the segments whose number must be seen to change if that of all others may."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Repeats:
    """The segments of which a second one in a text says nothing."""

    idle: frozenset[Segment] = frozenset()
    """They were seen to be there once and twice in one state."""
    telling: frozenset[Segment] | None = None
    """If not None, all segments are idle but these."""

    def are_idle(self, part: Segment) -> bool:
        """Return whether it says nothing how often a text has a segment."""
        return part in self.idle or (self.telling is not None and part not in self.telling)

    def once(self, parsed: Parsed) -> Parsed:
        """Return the texts with each idle segment once, where it stands first."""
        if not self.idle and self.telling is None:
            return parsed
        is_idle = np.array([self.are_idle(part) for part in parsed.segments], np.bool_)
        return parsed.without(parsed.is_repeat & is_idle[parsed.segment])


def learn_repeats(parsed: Parsed, visits: Visits) -> Repeats:
    """Return what the numbers of segments in looks at one state show.

    Args:
        parsed: The texts of the nodes.
        visits: All visits of these nodes.
    """
    counts = [Counter(own) for own in parsed.lists()]
    repeated = sorted({code for own in counts for code, times in own.items() if times > 1})
    if not repeated:
        return Repeats()
    key_of = {code: key for key, code in enumerate(repeated)}
    records = [
        (key_of[code], visit, times)
        for visit, node in enumerate(visits.node.tolist())
        for code, times in counts[node].items()
        if code in key_of
    ]
    key, visit, value = np.array(records, np.int64).reshape(-1, 3).T.copy()
    scale = Scale.of([(str(number),) for number in range(int(value.max()) + 1)])
    found = tally(key, len(repeated), visit, value, visits, scale)
    is_fixed = (found.disagree == 0) & (found.loose_expected >= _SURE)
    is_telling = found.is_bound | is_fixed
    is_open = found.loose_expected >= 1
    is_pure = (is_open & (found.disagree > 0)).sum() > _PURE * is_open.sum()

    def named(which: np.ndarray) -> frozenset[Segment]:
        return frozenset(parsed.segments[repeated[key]] for key in np.flatnonzero(which).tolist())

    known = Repeats(idle=named(found.is_free & ~is_telling))
    if not is_pure:
        return known
    rest = found.of(is_telling.astype(np.int64), 2)
    against = rest.is_driven | rest.is_sticky | rest.decides
    if rest.is_noise[0] and not against[0]:
        return replace(known, telling=named(is_telling))
    # Sentences of one line are repeated together: what looks like much evidence is not. So outcomes
    # are asked.
    stays = found.loose_observed <= _SELDOM * found.loose_expected
    every = Repeats(telling=named(stays & (found.loose_expected >= _SURE)))
    return every if _no_outcome_depends(parsed, visits, every) else known


def _no_outcome_depends(parsed: Parsed, visits: Visits, repeats: Repeats) -> bool:
    """Return whether no outcome depends on how often idle segments stand in a text."""
    is_idle = np.array([repeats.are_idle(part) for part in parsed.segments], np.bool_)
    value = parsed.without(~is_idle[parsed.segment]).identities(any_order=True)
    rest = repeats.once(parsed).identities(any_order=True)
    every = np.arange(len(visits.node))
    found = dependence_on(
        np.zeros_like(every), 1, every, value[visits.node], rest[visits.node], visits
    )
    return bool(found.is_idle[0])
