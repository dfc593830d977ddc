"""The report of an import: all that was read, made, left out or refused."""

from dataclasses import asdict, dataclass, field
from typing import Any

from graphcredit.collector.importers.coverage.covered import Coverage
from graphcredit.store.plural import counted
from graphcredit.store.text_table import Report


@dataclass(frozen=True, kw_only=True, slots=True)
class BadRow:
    """A record that could not be imported."""

    where: str
    """File and line."""
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


@dataclass(kw_only=True, slots=True, repr=False)
class ImportReport(Report):
    """What an import read and made."""

    num_files: dict[str, int] = field(default_factory=dict[str, int])
    """Files read, by format."""
    num_records: int = 0
    """Rows, items and samples read from them."""
    num_trajectories: int = 0
    """Trajectories written now."""
    num_already_there: int = 0
    """Trajectories that the store had, with the same steps."""
    num_different: int = 0
    """Trajectories that the store had with other values; nothing was changed."""
    different_columns: list[str] = field(default_factory=list[str])
    """The columns in which those differ."""
    difference: str = ""
    """How the first of those differs; empty if there is none."""
    num_steps: int = 0
    """Steps of those written now, and of those there with the same steps."""
    num_groups: int = 0
    """Groups of these, and of those with other values."""
    num_single_groups: int = 0
    """Groups with one trajectory."""
    num_success: int = 0
    num_failed: int = 0
    """Trajectories that ended without success, truncated ones not counted."""
    num_truncated: int = 0
    """Unsuccessful trajectories that a limit ended."""
    num_by_return: int = 0
    """Trajectories whose return is known, and not whether it is a win."""
    num_unjudged: int = 0
    """Trajectories without reward and success; they are incomplete in the store."""
    num_with_tokens: int = 0
    """Steps with token ids."""
    num_with_logprobs: int = 0
    """Of these, steps with log-probabilities."""
    without_tokens: dict[str, int] = field(default_factory=dict[str, int])
    """Steps without token ids, by reason."""
    num_images: int = 0
    """Images that messages of the counted steps show, and that are kept."""
    left_out: dict[str, int] = field(default_factory=dict[str, int])
    """What became no step, by reason."""
    other_files: list[str] = field(default_factory=list[str])
    """Files of the folder that are no logs of a known format."""
    bad_rows: list[BadRow] = field(default_factory=list[BadRow])
    """The first bad rows."""
    num_bad_rows: int = 0
    bad_images: list[BadRow] = field(default_factory=list[BadRow])
    """The first images that are missing, damaged or may not be read; their rows are imported."""
    num_bad_images: int = 0
    coverage: dict[str, Coverage] = field(default_factory=dict[str, Coverage])
    """How much of the text became part of a step, by format, and what did not."""
    notes: list[str] = field(default_factory=list[str])
    """What was decided, and what to know about it."""

    def headline(self) -> str:
        """Return how many trajectories were made."""
        return (
            f"{counted(self.num_trajectories, 'rollout')} imported, "
            f"{self.num_already_there:,} were there already"
        )

    def as_json(self) -> dict[str, Any]:
        """Return everything above by name."""
        return asdict(self)
