"""A check of the audit, and its findings."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from graphcredit.credit.audit.scope import Scope
from graphcredit.credit.audit.thresholds import AuditThresholds

Need: TypeAlias = Literal["steps", "credit"]
"""What a check reads: steps alone, or credit too."""

Sql: TypeAlias = str | Callable[[Scope], str]
"""SQL over the tables of `scope.py`, or how to make it."""


class AuditSeverity(StrEnum):
    """What a finding means."""

    ERROR = "error"
    """The credit is wrong, or the data it is made of."""
    WARNING = "warning"
    """The credit is right, but says little, or less than it seems to."""
    INFO = "info"
    """Something to know."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One row of the audit's table."""

    name: str
    severity: AuditSeverity
    """Of what it finds; above `limit`, where it has one."""
    means: str
    """What is wrong, after "3 of 16 <of>"."""
    remedy: str
    of: str
    """What is counted, in the plural; a key of `numbers.TOTALS`."""
    places: Sql
    """One row per place of the fault: run_id, iteration, task_id (null: all tasks), number (how
    many `of` are affected), badness (the worst places are shown) and detail."""
    limit: str | None = None
    """Field of the thresholds: up to this share, what is found is only INFO."""
    needs: Need = "steps"

    def severity_of(self, number: int, total: int, thresholds: AuditThresholds) -> AuditSeverity:
        """Return what it means that so many of a total are affected."""
        is_rare = self.limit is not None and number <= getattr(thresholds, self.limit) * total
        return AuditSeverity.INFO if is_rare else self.severity


@dataclass(frozen=True, kw_only=True, slots=True)
class FaultLocation:
    """Where a fault is."""

    run_id: str
    iteration: int
    task_id: str | None
    """None: all tasks of the iteration."""
    number: int
    """How much of what the check counts is affected here."""
    detail: str
    """What was found here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditFinding:
    """A check that found something."""

    check: Check
    severity: AuditSeverity
    number: int
    """How much of what the check counts is affected."""
    total: int
    """How much there is."""
    places: tuple[FaultLocation, ...]
    """The worst few."""
    num_places: int
    """How many there are."""

    @property
    def share(self) -> float:
        """The affected share of what the check counts."""
        return self.number / max(self.total, 1)

    @property
    def message(self) -> str:
        """How much is affected, and what that means."""
        return (
            f"{self.number:,} of {self.total:,} {self.check.of} ({self.share:.1%}) "
            f"{self.check.means}"
        )
