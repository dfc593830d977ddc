"""What a check found."""

from dataclasses import dataclass, field

from graphcredit.store.checks.file_rules import Rule, Severity

SHOWN_ROWS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Violation:
    """One rule, broken in one file."""

    rule: Rule
    file: str
    """Path relative to the store; a folder, if it is about all files there."""
    found: str
    """What was found; of the first such row, if it is about rows."""
    rows: tuple[int, ...] = ()
    """The first rows (0-based) that break the rule; empty if it is about the file."""
    num_rows: int = 0
    """How many rows break it."""
    trajectories: frozenset[str | None] = field(default=frozenset(), repr=False)
    """All trajectories of the rows of a step shard; None for rows without a trajectory_id."""
    copies: tuple[int, ...] = field(default=(), repr=False)
    """All rows, where each is equal to one that stays: these may go, their trajectories not."""

    @property
    def is_error(self) -> bool:
        """Whether the store breaks its contract, rather than being unusual."""
        return self.rule.severity is Severity.ERROR

    @property
    def message(self) -> str:
        """What must hold, what was found, where, what to do."""
        where = self.file
        if self.rows:
            more = self.num_rows - len(self.rows)
            listed = ", ".join(map(str, self.rows)) + (f" and {more:,} more" if more else "")
            where += f", row {listed}" if self.num_rows == 1 else f", rows {listed}"
        return f"{where}: {self.rule.holds}: found {self.found}; {self.rule.remedy}"


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckReport:
    """What a store holds, and which rules it breaks."""

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
    """Those among them without a digest: where a bit flips in one, it may read as another value."""

    @property
    def errors(self) -> tuple[Violation, ...]:
        """The violations that must be repaired."""
        return tuple(v for v in self.violations if v.is_error)

    @property
    def notices(self) -> tuple[Violation, ...]:
        """The oddities that may stay."""
        return tuple(v for v in self.violations if not v.is_error)
