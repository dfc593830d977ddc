"""A trajectory that was made of a rollout, ready for the store."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphcredit.collector.importers.images.neighbour_files import KeptImage
from graphcredit.collector.importers.rules.outcomes import Verdict

Partition = tuple[str, int]
"""A run and an iteration."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Where a trajectory was read."""

    file: int = 0
    """Index of its file in the log."""
    where: str = ""
    """File and place, for messages."""
    num_bytes_read: float = 0.0
    """Bytes of the log up to here."""


UNKNOWN = Origin()


@dataclass(frozen=True, kw_only=True, slots=True)
class Begun:
    """How a trajectory begins, as digests."""

    state: bytes
    action: bytes
    then: bytes
    """The state after it; empty if there is none."""
    prompt: bytes
    """What was said before the first action; empty if nothing was."""
    field: str | None
    """The field of its state, if nothing but the name says that the action was chosen in it."""
    words: str
    """The beginning of the action; empty if it calls a tool."""


@dataclass(kw_only=True, slots=True)
class ImportedTrajectory:
    """A trajectory, ready for the store. In a batch, its columns are those of the batch's table."""

    run_id: str
    iteration: int
    task_id: str
    trajectory_id: str
    has_own_id: bool
    """Whether the log has an id for it; otherwise the id is made of its content."""
    is_by_file: bool
    """Whether its id is the path of its file, which has no other."""
    content: bytes
    """A digest of its steps, where the log has an id for it; of its record, where it is by file."""
    num_steps: int
    verdict: Verdict
    candidates: Mapping[str, tuple[str, float]]
    """Without a verdict: numbers and flags of the record, to the option that takes each for the
    verdict, and its value."""
    total: float | None
    """Its return; None if the log says nothing of reward or success."""
    grouped_by: str
    """The field that names its group, or what else does."""
    labels: Mapping[str, str]
    """Short fields of its record, which might name its group."""
    part: str
    """The first part of its file's path below the folder that was named; empty of one file."""
    begun: Begun
    counts: Mapping[str, int]
    """What the report adds up: its outcome, its steps, and steps of some kinds."""
    left_out: Mapping[str, int]
    notes: tuple[str, ...]
    columns: Mapping[str, list[Any]]
    """The columns of its steps that have a value, by name. The last step ends the trajectory,
    unless it is unknown whether it succeeded."""
    images: tuple[KeptImage, ...]
    """The images of its messages, each once."""
    origin: Origin

    @property
    def partition(self) -> Partition:
        """Its run and iteration."""
        return self.run_id, self.iteration

    @property
    def steps(self) -> tuple[dict[str, Any], ...]:
        """The columns of each step by name."""
        names = tuple(self.columns)
        return tuple(
            dict(zip(names, row, strict=True)) for row in zip(*self.columns.values(), strict=True)
        )
