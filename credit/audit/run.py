"""The audit: is the grouping sound, and does the credit say what it seems to say?

Adding a check is adding a row to the table of one file in `checks/`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graphcredit.credit.audit import truth
from graphcredit.credit.audit.check import (
    AuditFinding,
    AuditSeverity,
    Check,
    FaultLocation,
    Need,
    Sql,
)
from graphcredit.credit.audit.checks import advantages, copies, grouping, outcomes, states
from graphcredit.credit.audit.numbers import NUMBERS, TOTALS
from graphcredit.credit.audit.scope import Scope, prepare
from graphcredit.credit.audit.thresholds import AuditThresholds
from graphcredit.store.errors import InputError, interrupts
from graphcredit.store.layout import AnyStore, Store, open_store
from graphcredit.store.progress import OnProgress, silent
from graphcredit.store.sql.catalog import Connection, with_views
from graphcredit.store.text_table import Report, Rows

CHECKS: tuple[Check, ...] = (
    *grouping.CHECKS,
    *copies.CHECKS,
    *outcomes.CHECKS,
    *advantages.CHECKS,
    *states.CHECKS,
)
"""All checks, in the order in which findings of one severity are reported."""

SHOWN_PLACES = 5

_SEVERITIES = list(AuditSeverity)


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class AuditReport(Report):
    """What an audit found."""

    findings: tuple[AuditFinding, ...]
    """Errors first."""
    numbers: dict[str, dict[str, float]]
    """Title to label to number; empty if they were not asked for."""
    skipped: dict[str, Need]
    """Checks that could not be made, and what they need."""

    def headline(self) -> str:
        """Return how many findings there are."""
        counts = [(self.count(severity), severity.value) for severity in AuditSeverity]
        counted = ", ".join(f"{count} {name}{'s' * (count != 1)}" for count, name in counts[:2])
        return f"{counted}, {counts[2][0]} to know"

    def table(self) -> tuple[Sequence[str], Rows]:
        """Return the findings."""
        rows = [(str(each.severity), each.check.name, each.message) for each in self.findings]
        return ("severity", "check", "finding"), rows

    def count(self, severity: AuditSeverity) -> int:
        """Return how many findings have a severity."""
        return sum(finding.severity is severity for finding in self.findings)

    @property
    def worth_a_warning(self) -> list[AuditFinding]:
        """The errors and the warnings."""
        return [each for each in self.findings if each.severity is not AuditSeverity.INFO]

    def as_json(self) -> dict[str, Any]:
        """Return everything, for programs."""
        return {
            "findings": [_finding_as_json(finding) for finding in self.findings],
            "numbers": self.numbers,
            "skipped": self.skipped,
        }


def audit(
    store: AnyStore,
    *,
    run_id: str | None = None,
    iteration: int | None = None,
    thresholds: AuditThresholds | None = None,
    on_progress: OnProgress = silent,
) -> AuditReport:
    """Check the grouping, the trajectories and the credit of a store.

    A store without credit gets the checks that need steps alone; the others are `skipped`.

    Args:
        store: A store, or its path.
        run_id: Only this run.
        iteration: Only this iteration.
        thresholds: From where on something is worth a warning.
        on_progress: Called with the checks done and their number.

    Raises:
        InputError: There are no steps to audit.
        OptionError: A threshold is out of its range.
        SchemaError: A shard cannot be read.
    """
    opened = open_store(store)
    limits = thresholds or AuditThresholds()

    def ask(views: Connection) -> AuditReport:
        return audit_in(views, opened, run_id, iteration, limits, on_progress)

    with interrupts():
        return with_views(opened, ask, run_id=run_id, iteration=iteration)


def audit_in(
    views: Connection,
    store: Store,
    run_id: str | None,
    iteration: int | None,
    limits: AuditThresholds,
    on_progress: OnProgress,
) -> AuditReport:
    """Return the same of the views of a store; its tables are gone afterwards."""
    if not store.shards(run_id, iteration):
        runs = ", ".join(store.runs()) or "none"
        wanted = f"run {run_id or 'any'}, iteration {'any' if iteration is None else iteration}"
        raise InputError(
            f"{store.root} must have step shards: found none for {wanted} (runs: {runs})"
        )
    with views.cursor() as connection:
        scope = prepare(connection, store, run_id, iteration, limits)
        connection.execute(copies.TABLE)
        return _report(scope, limits, on_progress)


def _report(scope: Scope, thresholds: AuditThresholds, on_progress: OnProgress) -> AuditReport:
    findings: list[AuditFinding] = []
    for done, check in enumerate(CHECKS):
        on_progress("audit", done, len(CHECKS))
        finding = _find(scope, check, thresholds) if scope.has(check.needs) else None
        if finding:
            findings.append(finding)
    return AuditReport(
        findings=tuple(sorted(findings, key=lambda f: _SEVERITIES.index(f.severity))),
        numbers=_numbers(scope),
        skipped={check.name: check.needs for check in CHECKS if not scope.has(check.needs)},
    )


def _find(scope: Scope, check: Check, thresholds: AuditThresholds) -> AuditFinding | None:
    rows = _rows(
        scope,
        f"""
        SELECT run_id, iteration, task_id, number, detail,
            (sum(number) OVER ())::BIGINT, count(*) OVER ()
        FROM ({_text(scope, check.places)})
        ORDER BY badness DESC, number DESC, run_id, iteration, task_id, detail
        LIMIT {SHOWN_PLACES}
        """,
    )
    if not rows:
        return None
    number, num_places = rows[0][-2:]
    ((total,),) = _rows(scope, _text(scope, TOTALS[check.of]))
    return AuditFinding(
        check=check,
        severity=check.severity_of(number, total, thresholds),
        number=number,
        total=total,
        places=tuple(
            FaultLocation(run_id=run, iteration=iteration, task_id=task, number=here, detail=detail)
            for run, iteration, task, here, detail, *_ in rows
        ),
        num_places=num_places,
    )


def _numbers(scope: Scope) -> dict[str, dict[str, float]]:
    numbers = {
        row.name: {
            label: value
            for label, value in _rows(scope, _text(scope, row.rows))
            if value is not None
        }
        for row in NUMBERS
        if scope.has(row.needs)
    }
    if scope.has_truth and scope.has_credit:
        numbers |= truth.numbers(scope)
    return {name: values for name, values in numbers.items() if values}


def _text(scope: Scope, sql: Sql) -> str:
    return sql if isinstance(sql, str) else sql(scope)


def _rows(scope: Scope, sql: str) -> list[tuple[Any, ...]]:
    return scope.connection.execute(sql).fetchall()


def _finding_as_json(finding: AuditFinding) -> dict[str, Any]:
    return {
        "check": finding.check.name,
        "severity": finding.severity.value,
        "message": finding.message,
        "number": finding.number,
        "total": finding.total,
        "share": finding.share,
        "remedy": finding.check.remedy,
        "places": [
            {
                "run_id": place.run_id,
                "iteration": place.iteration,
                "task_id": place.task_id,
                "number": place.number,
                "detail": place.detail,
            }
            for place in finding.places
        ],
        "num_places": finding.num_places,
    }
