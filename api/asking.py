"""Questions to a log or a store, whose answers a notebook shows."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from graphcredit.collector.importers.options import ImportOptions
from graphcredit.credit.audit import run as audits
from graphcredit.credit.audit.run import AuditReport
from graphcredit.credit.audit.thresholds import AuditThresholds
from graphcredit.credit.evidence.judge import evidence as judge
from graphcredit.credit.evidence.report import EvidenceReport
from graphcredit.credit.why.decisions import ComparedDecision, decisions
from graphcredit.credit.why.finding_words import words
from graphcredit.credit.why.findings import Finding
from graphcredit.credit.why.pooled import PooledDecision
from graphcredit.credit.why.report import why_in
from graphcredit.credit.why.sentences import sentence
from graphcredit.logs import Log, import_options, log_at
from graphcredit.loop.asked import asked
from graphcredit.loop.distrust import with_distrust
from graphcredit.loop.evidence_states import definitions_of
from graphcredit.store.errors import CreditWarning
from graphcredit.store.keywords import takes_options
from graphcredit.store.layout import AnyStore, open_store
from graphcredit.store.plural import counted
from graphcredit.store.progress import OnProgress, silent
from graphcredit.store.sql.catalog import run_trusted_query
from graphcredit.store.text_table import Report, Rows
from graphcredit.trainer.config import TrainConfig, read_config


@dataclass(frozen=True, slots=True, repr=False)
class Decisions(Report):
    """What rollouts lost by; each finding, choice and decision is a sentence."""

    decisions: tuple[ComparedDecision, ...]
    """Single decisions: those that are beyond chance first."""
    findings: tuple[Finding, ...] = ()
    """What failed rollouts did that others did not."""
    pooled: tuple[PooledDecision, ...] = ()
    """Choices that recur over tasks."""
    reason: str = ""
    """Why there is nothing to compare, and what to do; empty where there is."""
    distrust: tuple[str, ...] = ()
    """What the audit warns of, what of the log is not in it, and how far to trust the states."""

    @property
    def sentences(self) -> list[str]:
        """A sentence for each decision, with what the others did there and how they ended."""
        return [sentence(each) for each in self.decisions]

    def headline(self) -> str:
        """Return why there is nothing to say, or how much there is."""
        if self.reason:
            return f"{self.reason[0].upper()}{self.reason[1:]}."
        return (
            f"{counted(len(self.findings), 'finding')}, {counted(len(self.pooled), 'choice')} over "
            f"tasks and {counted(len(self.decisions), 'single decision')}: print shows them"
        )

    def __str__(self) -> str:
        _, rows = self.table()
        return "\n".join([*[self.reason] * bool(self.reason), *map(" ".join, rows)])

    def table(self) -> tuple[Sequence[str], Rows]:
        """Return the sentences, numbered, and then what to distrust."""
        told = [*self.findings, *self.pooled, *self.decisions]
        rows = [(f"{number}.", words(each)) for number, each in enumerate(told, 1)]
        return ("", ""), [*rows, *(("distrust:", each) for each in self.distrust)]


@takes_options(ImportOptions, omit=("try_",))
def why(
    source: Log | AnyStore,
    *,
    keep: Path | str | None = None,
    trajectory: str | None = None,
    most: int | None = None,
    on_progress: OnProgress = silent,
    **options: Any,
) -> Decisions:
    """Say what failures do that wins do not, which decisions mattered, and what to distrust.

    A log is imported into a store and credited by the recommended estimator. In a store, only
    iterations without any credit get it.

    Example:
        print(graphcredit.why("outputs/chats.jsonl", state="facts"))

    Args:
        source: A log, as in `import_log`, or a store.
        keep: Where to keep the store that is made of a log; by default it is thrown away.
        trajectory: Only the decisions of this rollout.
        most: Most single decisions; by default those beyond chance.
        on_progress: Called with what is done.
        **options: Of `ImportOptions`.

    Raises:
        InputError: The log cannot be read, or does not say how its rollouts ended; a store has
            other credit, or stale one; or there is no such rollout.
    """
    made = import_options(**options)
    with (
        log_at(source, made) as path,
        asked(path, made, keep=keep, on_progress=on_progress) as found,
    ):
        if trajectory is not None:
            shown = decisions(found.store, trajectory_id=trajectory, most=most or 10)
            return Decisions(tuple(shown))
        report, doubted = with_distrust(
            found, made.state, partial(why_in, most=most), on_progress=on_progress
        )
    return Decisions(
        tuple(report.ranked.decisions),
        findings=report.findings.findings,
        pooled=report.pooled,
        reason=report.reason,
        distrust=(*doubted.first, *doubted.doubts),
    )


@takes_options()
def evidence(
    store: AnyStore,
    *,
    run: str | None = None,
    iteration: int | None = None,
    on_progress: OnProgress = silent,
) -> EvidenceReport:
    """Judge definitions of a state: which tells how rollouts end, by the log alone?

    Example:
        report = graphcredit.evidence("store")
        print(report, report.best)

    Args:
        store: A store, or its path.
        run: Only this run.
        iteration: Only this iteration.
        on_progress: Called with the definitions judged and their number.

    Returns:
        What the states of the store tell, and rules for tools, the one with most evidence first.
        `best` is None where none tells more than chance.

    Raises:
        InputError: There are no complete trajectories.
        SchemaError: A shard cannot be read.
    """
    opened = open_store(store)
    definitions = definitions_of(opened, run)
    return judge(opened, definitions, run_id=run, iteration=iteration, on_progress=on_progress)


@takes_options(AuditThresholds)
def audit(
    store: AnyStore,
    *,
    run: str | None = None,
    iteration: int | None = None,
    on_progress: OnProgress = silent,
    **options: Any,
) -> AuditReport:
    """Check the groups, the trajectories and the credit of a store.

    A store without credit gets the checks that need steps alone; the others are `skipped`.

    Example:
        print(graphcredit.audit("store", max_singleton_share=0.1))

    Args:
        store: A store, or its path.
        run: Only this run.
        iteration: Only this iteration.
        on_progress: Called with the checks done and their number.
        **options: Of `AuditThresholds`.

    Raises:
        InputError: There are no steps to audit.
        OptionError: A threshold is out of its range.
        SchemaError: A shard cannot be read.
    """
    return audits.audit(
        store,
        run_id=run,
        iteration=iteration,
        thresholds=AuditThresholds(**options),
        on_progress=on_progress,
    )


@takes_options()
def sql(
    store: AnyStore,
    query: str,
    *,
    limit_rows: int = 0,
    timeout: float = 60.0,
    memory: int = 1024,
    unlocked: bool = False,
) -> pl.DataFrame:
    """Return the rows of a query of the store's views.

    Example:
        graphcredit.sql("store", "SELECT task_id, success_rate FROM groups ORDER BY 2")

    Args:
        store: A store, or its path.
        query: One SELECT statement. It reads only the views, writes no file, and is stopped at its
            limits.
        limit_rows: Most rows; 0 for all.
        timeout: Seconds that it may take.
        memory: MiB that the query and its result may use.
        unlocked: Run any SQL, on any file that you can access, without limits.

    Raises:
        QueryRefusedError: The statement is not allowed, fails, or exceeds a limit.
        SchemaError: A shard cannot be read.
    """
    opened, most = open_store(store), limit_rows or None
    if unlocked:
        result = run_trusted_query(opened, query, max_rows=most)
    else:
        from graphcredit.store.confined.limits import MIB
        from graphcredit.store.sql.sandbox import run_query  # pyarrow.dataset loads pandas

        bytes_ = memory * MIB
        result = run_query(opened, query, max_rows=most, seconds=timeout, memory=bytes_)
    for doubt in result.doubts:
        warnings.warn(doubt, CreditWarning, stacklevel=3)
    return pl.DataFrame(result.table)


@takes_options(TrainConfig)
def train(
    store: AnyStore,
    *,
    config: Path | str | None = None,
    on_progress: OnProgress = silent,
    **options: Any,
) -> dict[str, Any] | None:
    """Improve a policy on the steps of an iteration, weighed by one advantage column.

    A training that was killed goes on where its last checkpoint is.

    Example:
        graphcredit.train("store", model="./policy", advantage="reach", out="./policy-1")

    Args:
        store: A store, or its path.
        config: A TOML file of these options, which keywords override.
        on_progress: Called with the tokens trained on and their number.
        **options: Of `TrainConfig`.

    Returns:
        The summary that `result.json` holds; None on every rank but the first.

    Raises:
        OptionError: An option is not right, or a needed one is missing.
        InputError: The data, the model or the folder cannot be used; nothing was trained.
        TrainingError: It could not go on.
    """
    given = {**options, "store": open_store(store).root}
    read = read_config(None if config is None else Path(config), given)
    from graphcredit.trainer.training import train as run  # here: it takes seconds to import

    return run(read, on_progress=on_progress)
