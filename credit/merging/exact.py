"""The merge `exact`: texts that are equal after the rules are one state."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from graphcredit.credit.merging.admissible import UNKNOWN, unite
from graphcredit.credit.merging.candidates import Candidates, Union
from graphcredit.credit.merging.recognise import Identities, Looks, first_of
from graphcredit.credit.steps.arrays import Ints, factorise


@dataclass(frozen=True, slots=True)
class ExactMerge:
    """Leaves it at the rules."""

    def learn(self, batches: Iterable[Candidates]) -> "ExactMerge":
        """Return itself: it needs to see nothing first."""
        del batches
        return self

    def unite(self, candidates: Candidates) -> Union:
        """Return the candidates as they are."""
        return Union(nodes=candidates.nodes, num_refused=0)

    def recognise(self, candidates: Candidates, union: Union) -> Identities:
        """Return the normal forms, which must be equal."""
        return candidates.identities(union.nodes, candidates.texts(), same_text)


def same_text(observations: Looks) -> Ints:
    """Unite states with one text, as far as the guard allows."""
    code = pa.array(observations.texts, pa.large_string()).dictionary_encode().indices.to_numpy()
    is_known = observations.signature != UNKNOWN
    code_of_signature = np.where(is_known, factorise(observations.signature)[0], UNKNOWN)
    label, _ = unite(observations.group * max(len(observations.texts), 1) + code, code_of_signature)
    return first_of(label)
