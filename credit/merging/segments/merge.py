"""The merge `segments`: texts that are equal but for what comes and goes are one state."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from graphcredit.credit.merging.admissible import UNKNOWN, unite
from graphcredit.credit.merging.candidates import Candidates, Union
from graphcredit.credit.merging.recognise import Identities
from graphcredit.credit.merging.segments.compare import SameSegments
from graphcredit.credit.merging.segments.cut import cut, identities, outcome_classes, visits_of
from graphcredit.credit.merging.segments.evidence import Evidence, Judge, revise
from graphcredit.credit.steps.arrays import Ints
from graphcredit.credit.steps.nodes import Nodes, merge_nodes

_REVISIONS = 2
"""How often it looks at the states it found for further evidence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SegmentUnion(Union):
    """States, and how states of other iterations are compared with them."""

    same_segments: SameSegments
    """Knows what was noise in the batch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SegmentMerge:
    """Merges the nodes whose segments are the same, but for those that are noise."""

    judge: Judge = field(default_factory=lambda: Judge(Evidence()))
    """Knows the whole iteration once it has learned."""

    def learn(self, batches: Iterable[Candidates]) -> "SegmentMerge":
        """Return the merge that knows which segments stay with a state and which come and go."""
        evidence = Evidence()
        for found in batches:
            visits = visits_of(found.steps, found.nodes, found.signature_of(found.nodes))
            evidence.add(cut(found.texts()), visits)
        return SegmentMerge(judge=Judge(evidence))

    def unite(self, found: Candidates) -> SegmentUnion:
        """Return the groups of candidates with the same segments."""
        signature = found.signature_of(found.nodes)
        visits = visits_of(found.steps, found.nodes, signature)
        segmented = cut(found.texts())
        is_guarded = np.zeros(len(found.nodes.goal_of_group), bool)
        is_guarded[found.nodes.group_of_node[signature != UNKNOWN]] = True
        in_order = ~is_guarded[found.nodes.group_of_node]
        is_noise = self.judge.noise_in(segmented, visits)
        balance = self.judge.balance(segmented.names)
        identity = identities(segmented, is_noise, in_order)
        nodes, num_refused = _by_identity(found, identity, signature)
        for _ in range(_REVISIONS):
            of_class = outcome_classes(found.steps, nodes, visits, signature)
            is_noise = revise(segmented, visits, of_class, is_noise, balance)
            identity = identities(segmented, is_noise, in_order)
            nodes, num_refused = _by_identity(found, identity, signature)
        same_segments = SameSegments(
            segmented=segmented,
            group_of_text=found.nodes.group_of_node,
            is_noise=is_noise,
            in_order=in_order,
            judge=self.judge,
        )
        return SegmentUnion(nodes=nodes, num_refused=num_refused, same_segments=same_segments)

    def recognise(self, found: Candidates, union: SegmentUnion) -> Identities:
        """Return what is left of the normal forms without noise."""
        same = union.same_segments
        return found.identities(union.nodes, same.remaining(), same)


def _by_identity(found: Candidates, identity: Ints, signature: Ints) -> tuple[Nodes, int]:
    label, num_refused = unite(found.keys(identity), signature)
    return merge_nodes(found.nodes, label), num_refused
