"""The merge `exact`: texts that are equal after the rules are one state."""

from collections.abc import Iterable
from dataclasses import dataclass

from graphcredit.credit.merging.candidates import Candidates, Union


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

    def read(self, candidates: Candidates) -> list[str]:
        """Return the normal forms."""
        return candidates.forms
