"""The three verbs of a merge; each file with one is a row of `table.py`."""

from collections.abc import Iterable
from typing import Protocol, TypeVar

from graphcredit.credit.merging.candidates import Candidates, Union
from graphcredit.credit.merging.recognise import Identities

UnionT = TypeVar("UnionT", bound=Union)
"""What a merge makes of a batch, with what it needs to recognise the nodes later."""


class MergeMethod(Protocol[UnionT]):
    """A way to make states of candidates. It reads no files and changes nothing in place."""

    def learn(self, batches: Iterable[Candidates]) -> "MergeMethod[UnionT]":
        """Return the method that has seen a whole iteration, or itself if it need not.

        Args:
            batches: Whole groups each; read only by a method that learns.
        """
        ...

    def unite(self, candidates: Candidates) -> UnionT:
        """Return the states that the candidates of a batch are."""
        ...

    def recognise(self, candidates: Candidates, union: UnionT) -> Identities:
        """Return what the states are recognised by in other iterations.

        Args:
            candidates: The candidates of a batch.
            union: What `unite` made of them.
        """
        ...
