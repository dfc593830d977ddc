"""Where frequent segments are, and where they are not."""

from dataclasses import dataclass

import numpy as np

from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.steps.arrays import Bools, Ints

_OFTEN = 20
"""Visits that must show a segment."""
_MOST = 100
"""So many segments are looked at, the most frequent ones."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Presence:
    """Of some segments, at all visits of the groups that show them."""

    segments: list[int]
    """The segment of each key."""
    key: Ints
    """[n]."""
    visit: Ints
    """[n]."""
    is_there: Ints
    """[n] 1 where the visit shows the segment, else 0."""

    @classmethod
    def of(cls, parsed: Parsed, visits: Visits) -> "Presence":
        """Return where the segments of some texts are.

        Args:
            parsed: Of the texts of the nodes, those segments that are asked about.
            visits: All visits.
        """
        visit, segment = parsed.of_visits(visits.node)
        frequency = np.bincount(segment, minlength=len(parsed.segments))
        order = np.argsort(-frequency, kind="stable")[:_MOST]
        chosen = order[frequency[order] >= _OFTEN].tolist()
        shown: list[Bools] = []
        where: list[Ints] = []
        for code in chosen:
            is_there = np.zeros(len(visits.node), np.bool_)
            is_there[visit[segment == code]] = True
            rows = np.flatnonzero(np.isin(visits.group, np.unique(visits.group[is_there])))
            where.append(rows)
            shown.append(is_there[rows])
        return cls(
            segments=chosen,
            key=np.repeat(np.arange(len(chosen)), [len(rows) for rows in where]),
            visit=np.concatenate([np.empty(0, np.int64), *where]),
            is_there=np.concatenate([np.empty(0, np.bool_), *shown]).astype(np.int64),
        )
