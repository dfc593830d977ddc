"""The merge `segments`: texts of which the same is kept are one state."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from graphcredit.credit.merging.admissible import unite
from graphcredit.credit.merging.candidates import Candidates, Union
from graphcredit.credit.merging.exact import same_text
from graphcredit.credit.merging.recognise import Identities, Looks
from graphcredit.credit.merging.segments.learn import learn
from graphcredit.credit.merging.segments.learned import Irrelevant, Reader
from graphcredit.credit.merging.segments.sample import take_sample
from graphcredit.credit.merging.segments.tokens import split
from graphcredit.credit.steps.arrays import Ints
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
        reader, code_of = Reader(self.irrelevant), dict[tuple[str, ...], int]()
        codes = [code_of.setdefault(reader.read(text), len(code_of)) for text in candidates.forms]
        code = np.array(codes, np.int64)[candidates.form_of(candidates.nodes)]
        label, num_refused = unite(candidates.keys(code), candidates.signature_of(candidates.nodes))
        return Union(nodes=merge_nodes(candidates.nodes, label), num_refused=num_refused)

    def recognise(self, candidates: Candidates, union: Union) -> Identities:
        """Return what is kept of the normal forms."""
        reader = Reader(self.irrelevant)
        kept = ["\n".join(reader.read(text)) for text in candidates.forms]
        texts = [kept[code] for code in candidates.form_of(candidates.nodes).tolist()]
        return candidates.identities(union.nodes, texts, SameKept(irrelevant=self.irrelevant))


@dataclass(frozen=True, kw_only=True, slots=True)
class SameKept:
    """Unites states of several iterations, as what is irrelevant in this one has it."""

    irrelevant: Irrelevant

    def __call__(self, observations: Looks) -> Ints:
        """Return [n] the first of the states that each is."""
        reader = Reader(self.irrelevant)
        texts: list[str] = []
        for text in observations.texts:
            rows = (row.partition("\t") for row in text.split("\n") if row)
            texts.append("\n".join(reader.keep(split(row[0], row[2]) for row in rows)))
        return same_text(replace(observations, texts=texts))
