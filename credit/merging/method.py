"""The three verbs of a merge; each file with one is a row of `table.py`."""

from collections.abc import Iterable
from typing import Protocol

from graphcredit.credit.merging.candidates import Candidates, Union


class MergeMethod(Protocol):
    """A way to make states of candidates. It reads no files and changes nothing in place."""

    def learn(self, batches: Iterable[Candidates]) -> "MergeMethod":
        """Return the method that has seen a whole iteration, or itself if it need not.

        Args:
            batches: Whole groups each; read only by a method that learns.
        """
        ...

    def unite(self, candidates: Candidates) -> Union:
        """Return the states that the candidates of a batch are."""
        ...

    def read(self, candidates: Candidates) -> list[str]:
        """Return what it compares of each normal form: all of it, or what is no noise."""
        ...
