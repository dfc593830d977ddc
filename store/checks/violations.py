"""The findings of a check."""

import shlex
from dataclasses import dataclass, fields
from typing import Any

from graphcredit.store.checks.file_rules import FileRule, Severity

SHOWN_ROWS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Violation:
    """One rule, broken in one file."""

    rule: FileRule
    file: str
    """Path relative to the store; a folder if the violation is about all its files."""
    found: str
    """Description of the finding; for a rule about rows, of the first such row."""
    rows: tuple[int, ...] = ()
    """The first rows (0-based) that break the rule; empty for a rule about files."""
    num_rows: int = 0
    """Number of rows that break the rule."""

    @property
    def is_error(self) -> bool:
        """Whether the store breaks its contract, rather than being unusual."""
        return self.rule.severity is Severity.ERROR

    @property
    def message(self) -> str:
        """The file and rows, the rule, the finding and the remedy in one sentence."""
        where = self.file
        if self.rows:
            more = self.num_rows - len(self.rows)
            listed = ", ".join(map(str, self.rows)) + (f" and {more:,} more" if more else "")
            where += f", row {listed}" if self.num_rows == 1 else f", rows {listed}"
        return f"{where}: {self.rule.holds}: found {self.found}; {self.rule.remedy}"

    @property
    def takes_out(self) -> str | None:
        """The command, in the store, after which no reader sees the file; None if none helps."""
        if not (self.is_error and self.rule.is_movable):
            return None
        return shlex.join(("mv", self.file, f"{self.file}.out"))

    def as_json(self) -> dict[str, Any]:
        """Return the violation for a report."""
        return {
            "rule": self.rule.name,
            "file": self.file,
            "first_rows": list(self.rows),
            "num_rows": self.num_rows,
            "holds": self.rule.holds,
            "found": self.found,
            "remedy": self.rule.remedy,
            "takes_out": self.takes_out,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckReport:
    """The contents of a store in numbers, and the rules that it breaks."""

    violations: tuple[Violation, ...]
    num_step_shards: int
    num_steps: int
    """Steps of the shards that can be read."""
    num_trajectories: int
    """Complete and incomplete."""
    num_incomplete: int
    """Trajectories that never ended: allowed, but they get no credit."""
    num_files: int
    """Parquet files that can be read."""
    num_unverified: int
    """Number of readable files without a digest, in which a flipped bit may go unnoticed."""

    @property
    def errors(self) -> tuple[Violation, ...]:
        """The violations that must be repaired."""
        return tuple(v for v in self.violations if v.is_error)

    @property
    def notices(self) -> tuple[Violation, ...]:
        """The oddities that may stay."""
        return tuple(v for v in self.violations if not v.is_error)

    def as_json(self) -> dict[str, Any]:
        """Return the report of `graphcredit check`."""
        numbers = {each.name: getattr(self, each.name) for each in fields(self)[1:]}
        kinds = {"errors": self.errors, "notices": self.notices}
        return numbers | {kind: [v.as_json() for v in some] for kind, some in kinds.items()}
