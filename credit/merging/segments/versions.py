"""Segments that look like they come and go, but stand for each other: versions of one another.

A segment that some looks at one state lack is no noise if most of these have another version of it
in its place: one that shares most of its words, or that takes its place in another state, too.
"""

from collections import Counter, defaultdict

import numpy as np

from graphcredit.credit.merging.segments.align import LEAST_OVERLAP, Aligner
from graphcredit.credit.merging.segments.parse import Segment
from graphcredit.credit.merging.segments.parsed import Parsed
from graphcredit.credit.merging.segments.tokens import is_word, kind_of
from graphcredit.credit.merging.segments.visits import Visits
from graphcredit.credit.steps.arrays import Ints

UNKNOWN = "\0"
"""Stands for a word that is in one segment only, and for the words of a segment without any."""

_REPLACED = 0.6
"""Share of the looks without a segment that have another version of it, if it has versions."""
_LOOKS = 8
"""Other looks at a state in which a segment is looked for."""


def have_versions(parsed: Parsed, visits: Visits, owner: Ints, code: Ints) -> list[bool]:
    """Return whether most looks without a segment have another version of it instead.

    Args:
        parsed: The texts of the nodes.
        visits: All visits of these nodes.
        owner: [n] classes.
        code: [n] a segment that some but not all of the class's visits have.
    """
    if not len(owner):
        return []
    aligner, lists = Aligner(segments=parsed.segments), parsed.lists()
    order = np.argsort(visits.certain, kind="stable")
    start = np.searchsorted(visits.certain[order], np.arange(int(owner.max()) + 2))
    replaced: list[list[int]] = []
    classes: dict[tuple[int, int], set[int]] = defaultdict(set)
    for of_class, segment in zip(owner.tolist(), code.tolist(), strict=True):
        nodes = visits.node[order[start[of_class] : start[of_class + 1]]].tolist()
        model = next(node for node in nodes if segment in lists[node])
        others = [node for node in nodes if segment not in lists[node]][:_LOOKS]
        versions = [_replacement(aligner, segment, lists[model], lists[node]) for node in others]
        replaced.append(versions)
        for version in versions:
            classes[min(segment, version), max(segment, version)].add(of_class)

    def counts(segment: int, version: int) -> bool:
        if version < 0:
            return False
        pair = (min(segment, version), max(segment, version))
        return aligner.overlap(segment, version) >= LEAST_OVERLAP or len(classes[pair]) > 1

    share = [
        sum(counts(segment, version) for version in versions) / len(versions)
        for segment, versions in zip(code.tolist(), replaced, strict=True)
    ]
    # Two advertisements may meet by chance; what has versions has one in every look. So a segment
    # is judged with all that have the same words.
    totals, numbers = defaultdict[str, float](float), Counter[str]()
    words = [set(masked(parsed.segments[segment])) or {UNKNOWN} for segment in code.tolist()]
    for own, found in zip(words, share, strict=True):
        for word in own:
            totals[word] += found
            numbers[word] += 1
    means = (sum(totals[word] / numbers[word] for word in own) / len(own) for own in words)
    return [mean > _REPLACED for mean in means]


def masked(part: Segment) -> list[str]:
    """Return the words of a segment; digits count as 0."""
    words = [
        "0" if kind_of(token) else token
        for token in part.tokens
        if kind_of(token) or is_word(token)
    ]
    return [part.address, *words] if part.address else words


def _replacement(aligner: Aligner, segment: int, model: list[int], other: list[int]) -> int:
    """Return what another text has instead of a segment of a model; -1 if nothing."""
    return next((b for a, b in aligner.match(model, other) if a == segment), -1)
