"""The merge `segments`: texts of which the same is kept are one state."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from graphcredit.credit.merging.admissible import unite
from graphcredit.credit.merging.candidates import Candidates, Union
from graphcredit.credit.merging.segments.learn import learn
from graphcredit.credit.merging.segments.learned import Irrelevant, Reader
from graphcredit.credit.merging.segments.sample import take_sample
from graphcredit.credit.steps.nodes import merge_nodes


@dataclass(frozen=True, kw_only=True, slots=True)
class SegmentMerge:
    """Merges the nodes whose texts are the same but for what is irrelevant."""

    irrelevant: Irrelevant = field(default_factory=Irrelevant)
    """What the iteration shows, once it has learned."""

    def learn(self, batches: Iterable[Candidates]) -> "SegmentMerge":
        """Return the merge that knows what texts of one state differ in."""
        return SegmentMerge(irrelevant=learn(take_sample(batches)))

    def unite(self, candidates: Candidates) -> Union:
        """Return the groups of candidates of which the same is kept."""
        if not self.irrelevant:
            return Union(nodes=candidates.nodes, num_refused=0)
        code_of: dict[str, int] = {}
        codes = [code_of.setdefault(text, len(code_of)) for text in self.read(candidates)]
        code = np.array(codes, np.int64)[candidates.form_of(candidates.nodes)]
        label, num_refused = unite(candidates.keys(code), candidates.signature_of(candidates.nodes))
        return Union(nodes=merge_nodes(candidates.nodes, label), num_refused=num_refused)

    def read(self, candidates: Candidates) -> list[str]:
        """Return what is kept of the normal forms."""
        reader = Reader(self.irrelevant)
        return ["\n".join(reader.read(text)) for text in candidates.forms]
