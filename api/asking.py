"""The decisions of a store that mattered most, as a notebook shows them."""

from dataclasses import dataclass

from graphcredit.credit.options import RECOMMENDED
from graphcredit.store.errors import InputError
from graphcredit.store.layout import AnyStore, open_store
from graphcredit.store.provenance.freshness import credit_freshness
from graphcredit.viewer.why.decisions import Decision, decisions
from graphcredit.viewer.why.sentences import sentence


@dataclass(frozen=True, slots=True)
class Decisions:
    """Decisions, the most important one first; printed, each is a sentence."""

    decisions: tuple[Decision, ...]

    @property
    def sentences(self) -> list[str]:
        """A sentence for each, with what the others did there and how they ended."""
        return [sentence(each) for each in self.decisions]

    def __repr__(self) -> str:
        return "\n".join(f"{number}. {each}" for number, each in enumerate(self.sentences, 1))

    def _repr_markdown_(self) -> str:
        return repr(self)


def why(store: AnyStore, *, most: int = 10) -> Decisions:
    """Return the decisions that mattered most; `graphcredit why` says what to distrust, too.

    Example:
        print(graphcredit.why("store", most=3))

    Args:
        store: A store with credit by `reach`, or its path.
        most: Most decisions to return.

    Raises:
        InputError: There is no credit by `reach`.
    """
    opened = open_store(store)
    if not any(each.estimator == RECOMMENDED for each in credit_freshness(opened)):
        raise InputError(
            f"{opened.root} must have credit by {RECOMMENDED}: `graphcredit.assign(store, "
            f"estimators={RECOMMENDED!r})` makes it"
        )
    return Decisions(tuple(decisions(opened, most=most)))
