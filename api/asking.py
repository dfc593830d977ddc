"""Questions to a store, whose answers a notebook shows: what mattered, and what states tell."""

from dataclasses import dataclass

from graphcredit.credit.evidence.judge import evidence as judge
from graphcredit.credit.evidence.report import EvidenceReport
from graphcredit.credit.options import RECOMMENDED
from graphcredit.credit.why.decisions import ComparedDecision, decisions
from graphcredit.credit.why.finding_words import words
from graphcredit.credit.why.findings import Finding
from graphcredit.credit.why.pooled import PooledDecision
from graphcredit.credit.why.report import why_report
from graphcredit.credit.why.sentences import sentence
from graphcredit.loop.evidence_states import definitions_of
from graphcredit.store.errors import InputError
from graphcredit.store.layout import AnyStore, open_store
from graphcredit.store.provenance.freshness import credit_freshness


@dataclass(frozen=True, slots=True)
class Decisions:
    """What rollouts lost by; printed, each finding, choice and decision is a sentence."""

    decisions: tuple[ComparedDecision, ...]
    """Single decisions: those that are beyond chance first."""
    findings: tuple[Finding, ...] = ()
    """What failed rollouts did that others did not."""
    pooled: tuple[PooledDecision, ...] = ()
    """Choices that recur over tasks."""

    @property
    def sentences(self) -> list[str]:
        """A sentence for each decision, with what the others did there and how they ended."""
        return [sentence(each) for each in self.decisions]

    def _all(self, *, markdown: bool) -> str:
        told = [*self.findings, *self.pooled, *self.decisions]
        said = (words(each, markdown=markdown) for each in told)
        return "\n".join(f"{number}. {each}" for number, each in enumerate(said, 1))

    def __repr__(self) -> str:
        return self._all(markdown=False)

    def _repr_markdown_(self) -> str:
        return self._all(markdown=True)


def why(store: AnyStore, *, trajectory_id: str | None = None, most: int = 10) -> Decisions:
    """Return what rollouts lost by; `graphcredit why` says what to distrust, too.

    Example:
        print(graphcredit.why("store", most=3))

    Args:
        store: A store with credit by `reach`, or its path.
        trajectory_id: Only the decisions of this trajectory.
        most: Most single decisions to return.

    Raises:
        InputError: There is no credit by `reach`, or no such trajectory.
    """
    opened = open_store(store)
    if not any(each.estimator == RECOMMENDED for each in credit_freshness(opened)):
        raise InputError(
            f"{opened.root} must have credit by {RECOMMENDED}: `graphcredit.assign(store, "
            f"estimators={RECOMMENDED!r})` makes it"
        )
    if trajectory_id is not None:
        return Decisions(tuple(decisions(opened, trajectory_id=trajectory_id, most=most)))
    report = why_report(opened, most=most)
    return Decisions(
        tuple(report.ranked.decisions), findings=report.findings.findings, pooled=report.pooled
    )


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
