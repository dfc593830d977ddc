"""How often the segments of a group are seen again there: what is seen once, what lasts."""

from dataclasses import dataclass

import numpy as np

from graphcredit.credit.merging.segments.parsed import Parsed
from graphcredit.credit.merging.segments.visits import Visits
from graphcredit.credit.steps.arrays import Bools, Floats, Ints

_LASTING = 0.4
"""How often a part of a state is there at the next visit, too."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recurrence:
    """How often the segments of a group are seen again there."""

    key: Ints
    """[n] group · number of segments + segment, ascending."""
    is_once: Bools
    """[n] whether one visit has it."""
    lasting: Floats
    """[n] how much likelier a part of a state stays as often from one visit to the next."""

    @classmethod
    def count(cls, parsed: Parsed, visits: Visits) -> "Recurrence":
        """Count what the visits of whole groups have.

        Args:
            parsed: The texts of the nodes.
            visits: All visits of these nodes.
        """
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
