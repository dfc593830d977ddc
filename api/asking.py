"""Questions to a store, whose answers a notebook shows: what mattered, and what states tell."""

from dataclasses import dataclass

from graphcredit.credit.evidence.judge import evidence as judge
from graphcredit.credit.evidence.report import EvidenceReport
from graphcredit.credit.options import RECOMMENDED
from graphcredit.credit.why.decisions import ComparedDecision, decisions
from graphcredit.credit.why.sentences import in_markdown, sentence
from graphcredit.loop.evidence_states import definitions_of
from graphcredit.store.errors import InputError
from graphcredit.store.layout import AnyStore, open_store
from graphcredit.store.provenance.freshness import credit_freshness


@dataclass(frozen=True, slots=True)
class Decisions:
    """Decisions, the most important one first; printed, each is a sentence."""

    decisions: tuple[ComparedDecision, ...]

    @property
    def sentences(self) -> list[str]:
        """A sentence for each, with what the others did there and how they ended."""
        return [sentence(each) for each in self.decisions]

    def __repr__(self) -> str:
        return "\n".join(f"{number}. {each}" for number, each in enumerate(self.sentences, 1))

    def _repr_markdown_(self) -> str:
        lines = map(in_markdown, self.decisions)
        return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))


def why(store: AnyStore, *, trajectory_id: str | None = None, most: int = 10) -> Decisions:
    """Return the decisions that mattered most; `graphcredit why` says what to distrust, too.

    Example:
        print(graphcredit.why("store", most=3))

    Args:
        store: A store with credit by `reach`, or its path.
        trajectory_id: Only the decisions of this trajectory.
        most: Most decisions to return.

    Raises:
        InputError: There is no credit by `reach`, or no such trajectory.
    """
    opened = open_store(store)
    if not any(each.estimator == RECOMMENDED for each in credit_freshness(opened)):
        raise InputError(
            f"{opened.root} must have credit by {RECOMMENDED}: `graphcredit.assign(store, "
            f"estimators={RECOMMENDED!r})` makes it"
        )
    return Decisions(tuple(decisions(opened, trajectory_id=trajectory_id, most=most)))


def evidence(
    store: AnyStore, *, run_id: str | None = None, iteration: int | None = None
) -> EvidenceReport:
    """Judge definitions of a state: which tells how rollouts end, by the log alone?

    Example:
        report = graphcredit.evidence("store")
        print(report, report.best)

    Args:
        store: A store, or its path.
        run_id: Only this run.
        iteration: Only this iteration.

    Returns:
        What the states of the store tell, and rules for tools, the one with most evidence first.
        `best` is None where none tells more than chance.

    Raises:
        InputError: There are no complete trajectories.
        SchemaError: A shard cannot be read.
    """
    opened = open_store(store)
    return judge(opened, definitions_of(opened, run_id), run_id=run_id, iteration=iteration)
