"""What an import did: everything that was read, made, left out or refused."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from graphcredit.collector.importers.images.lost import ELSEWHERE, LostImage
from graphcredit.collector.importers.logs.messages import Omission
from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.trajectory import TrajectoryFacts
from graphcredit.store.plural import counted

_SHOWN_CANDIDATES = 12
"""Numbers of records without a verdict that a note names."""

_KEPT_BAD_ROWS = 100
"""Bad rows that a report names; the others are counted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BadRow:
    """A record that could not be imported."""

    where: str
    """File and line."""
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportReport:
    """What an import read and made."""

    num_files: Mapping[str, int]
    """Files read, by format."""
    num_records: int
    """Rows, items and samples read from them."""
    num_trajectories: int
    """Trajectories written now."""
    num_already_there: int
    """Trajectories that the store had, with the same steps."""
    num_different: int
    """Trajectories that the store had with other values; nothing was changed."""
    different_columns: tuple[str, ...]
    """The columns in which those differ."""
    difference: str
    """How the first of those differs; empty if there is none."""
    num_steps: int
    """Steps of those written now, and of those there with the same steps."""
    num_groups: int
    """Groups of these, and of those with other values."""
    num_single_groups: int
    """Groups with one trajectory."""
    num_success: int
    num_failed: int
    """Trajectories that ended without success, truncated ones not counted."""
    num_truncated: int
    """Unsuccessful trajectories that a limit ended."""
    num_unjudged: int
    """Trajectories without reward and success; they are incomplete in the store."""
    num_with_tokens: int
    """Steps with token ids."""
    num_images: int
    """Images that messages of the counted steps show, and that are kept."""
    left_out: Mapping[str, int]
    """What became no step, by reason."""
    other_files: tuple[str, ...]
    """Files of the folder that are no logs of a known format."""
    bad_rows: tuple[BadRow, ...]
    """The first bad rows."""
    num_bad_rows: int
    bad_images: tuple[BadRow, ...]
    """The first images that are missing, damaged or may not be read; their rows are imported."""
    num_bad_images: int
    notes: tuple[str, ...]
    """What was decided, and what to know about it."""

    def as_json(self) -> dict[str, Any]:
        """Return everything above by name."""
        return asdict(self)


@dataclass(kw_only=True, slots=True)
class Tally:
    """Counts what an import does, while it does it."""

    options: ImportOptions
    num_files: Counter[str] = field(default_factory=Counter[str])
    num_records: int = 0
    num_already_there: int = 0
    num_different: int = 0
    different_columns: dict[str, None] = field(default_factory=dict[str, None])
    difference: str = ""
    counts: Counter[str] = field(default_factory=Counter[str])
    groups: Counter[tuple[str, int, str]] = field(default_factory=Counter[tuple[str, int, str]])
    left_out: Counter[str] = field(default_factory=Counter[str])
    candidates: dict[str, None] = field(default_factory=dict[str, None])
    success_by: Counter[str] = field(default_factory=Counter[str])
    other_files: list[str] = field(default_factory=list[str])
    bad_rows: list[BadRow] = field(default_factory=list[BadRow])
    num_bad_rows: int = 0
    bad_images: list[BadRow] = field(default_factory=list[BadRow])
    num_bad_images: int = 0
    notes: dict[str, None] = field(default_factory=dict[str, None])

    def leave_out(self, left: Omission) -> None:
        """Count something that becomes no step."""
        self.left_out[left.reason] += left.count

    def refuse(self, where: str, reason: str) -> None:
        """Count a bad row, and name it."""
        self.num_bad_rows += 1
        if len(self.bad_rows) < _KEPT_BAD_ROWS:
            self.bad_rows.append(BadRow(where=where, reason=reason))

    def lose_image(self, where: str, image: LostImage) -> None:
        """Count an image that is not kept, and name it unless it is only elsewhere."""
        self.left_out[image.reason] += 1
        if image.reason == ELSEWHERE:
            return
        self.num_bad_images += 1
        if len(self.bad_images) < _KEPT_BAD_ROWS:
            self.bad_images.append(BadRow(where=where, reason=f"{image.reason}: {image.detail}"))

    def take(self, other: "Tally") -> None:
        """Add what was counted while some records were read elsewhere."""
        self.num_records += other.num_records
        self.left_out.update(other.left_out)
        self.num_bad_rows += other.num_bad_rows
        self.bad_rows += other.bad_rows[: _KEPT_BAD_ROWS - len(self.bad_rows)]
        self.num_bad_images += other.num_bad_images
        self.bad_images += other.bad_images[: _KEPT_BAD_ROWS - len(self.bad_images)]

    def add(self, made: TrajectoryFacts, *, is_new: bool) -> None:
        """Count a trajectory."""
        self.num_already_there += not is_new
        self.left_out.update(made.left_out)
        self.notes.update(dict.fromkeys(made.notes))
        self.groups[made.run_id, made.iteration, made.task_id] += 1
        self.success_by[made.verdict.by] += 1
        self.candidates.update(dict.fromkeys(made.candidates))
        outcome = {True: "success", None: "unjudged"}.get(
            made.verdict.success, "truncated" if made.is_truncated else "failed"
        )
        self.counts[outcome] += 1
        self.counts["steps"] += made.num_steps
        self.counts["tokens"] += made.num_with_tokens
        self.counts["images"] += made.num_images
        self.counts["partial_tokens"] += made.num_partial_tokens
        self.counts["missed"] += made.num_missed_states
        self.counts["empty"] += made.num_empty_actions
        self.counts["turn_rewards"] += bool(made.num_turn_rewards)
        self.counts["reward_of_success"] += made.is_reward_of_success

    def differ(self, made: TrajectoryFacts, columns: tuple[str, ...], how: str) -> None:
        """Count a trajectory that the store has with other values.

        Args:
            made: The trajectory, as it would be imported.
            columns: The columns that differ.
            how: Where it is in the store, and one value of each.
        """
        self.num_different += 1
        self.different_columns.update(dict.fromkeys(columns))
        self.difference = self.difference or how
        self.groups[made.run_id, made.iteration, made.task_id] += 1

    @property
    def num_trajectories(self) -> int:
        """Trajectories that were made, new or not."""
        return self.success_by.total()

    def report(self) -> ImportReport:
        """Return the counts so far."""
        counts = self.counts
        return ImportReport(
            num_files=dict(self.num_files),
            num_records=self.num_records,
            num_trajectories=self.num_trajectories - self.num_already_there,
            num_already_there=self.num_already_there,
            num_different=self.num_different,
            different_columns=tuple(self.different_columns),
            difference=self.difference,
            num_steps=counts["steps"],
            num_groups=len(self.groups),
            num_single_groups=sum(size == 1 for size in self.groups.values()),
            num_success=counts["success"],
            num_failed=counts["failed"],
            num_truncated=counts["truncated"],
            num_unjudged=counts["unjudged"],
            num_with_tokens=counts["tokens"],
            num_images=counts["images"],
            left_out=dict(self.left_out),
            other_files=tuple(self.other_files),
            bad_rows=tuple(self.bad_rows),
            num_bad_rows=self.num_bad_rows,
            bad_images=tuple(self.bad_images),
            num_bad_images=self.num_bad_images,
            notes=(*self._decided(), *self._warnings(), *self.notes),
        )

    def _decided(self) -> list[str]:
        if not self.num_trajectories:
            return []
        judged = [f"{by} ({count:,})" for by, count in self.success_by.items() if by != "nothing"]
        return [
            f"state: {self.options.state}; group: {self.options.group}; "
            f"reward: {self.options.reward}; success by {', '.join(judged) or 'nothing'}"
        ]

    def _warnings(self) -> list[str]:
        counts = self.counts
        notes: list[str] = []
        if counts["missed"]:
            notes.append(
                f"{self.options.state} found nothing in {counted(counts['missed'], 'state')} of "
                f"{counts['steps']:,}: there the state is what the agent last saw"
            )
        if counts["empty"]:
            notes.append(
                f"{counted(counts['empty'], 'step')} with an empty action: the message has neither "
                "text nor a call that is known"
            )
        if counts["unjudged"]:
            numbers = ", ".join(list(self.candidates)[:_SHOWN_CANDIDATES]) or "none"
            notes.append(
                f"{counted(counts['unjudged'], 'trajectory')} without a verdict: incomplete in the "
                "store, without credit. --success names a field or a threshold, --reward a number; "
                f"numbers of these records: {numbers}"
            )
        if self.options.success != "auto" and set(self.success_by) == {"nothing"}:
            notes.append(f"no record has the field that --success {self.options.success} names")
        if counts["partial_tokens"]:
            notes.append(
                f"{counted(counts['partial_tokens'], 'step')} with token ids but without prompt or "
                "log-probabilities: imported without tokens, since no trainer can use them"
            )
        if counts["reward_of_success"]:
            notes.append(
                f"{counted(counts['reward_of_success'], 'trajectory')} without a reward in the "
                "log: it is 1 for success and 0 otherwise"
            )
        if counts["turn_rewards"] and self.options.reward == "end":
            notes.append(
                f"{counted(counts['turn_rewards'], 'trajectory')} with rewards of single turns, "
                "which were not used: --reward turns uses them"
            )
        num_single = sum(size == 1 for size in self.groups.values())
        if num_single and num_single == len(self.groups):
            notes.append(f"every group has one trajectory, so no estimator can compare: {_REMEDY}")
        elif 2 * num_single > len(self.groups):
            notes.append(
                f"{num_single:,} of {len(self.groups):,} groups have one trajectory, which no "
                f"estimator can compare: if rollouts of one task are apart, {_REMEDY}"
            )
        return notes


_REMEDY = "--group names a field that rollouts of one task share"
