"""Coverage: how much of the texts of records became part of a step, and what no reader read."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from graphcredit.collector.importers.coverage.fields import record_field
from graphcredit.collector.importers.coverage.unread import unread_of
from graphcredit.collector.importers.messages.rollout import LoggedRollout

_MOST_FIELDS = 300
_REST = "(further fields)"


@dataclass(slots=True)
class FieldCount:
    """How much of a field was not read."""

    num_records: int = 0
    num_characters: int = 0


@dataclass(kw_only=True, slots=True)
class Coverage:
    """The texts of some records."""

    num_records: int = 0
    num_characters: int = 0
    """Of all texts but names, and those that readers leave out on purpose."""
    num_unread: int = 0
    """Those of texts of several words that no reader read; a single word may be a label."""
    unread: dict[str, FieldCount] = field(default_factory=dict[str, FieldCount])
    """All that no reader read, by path, such as `messages.*.content`."""
    guessed: Counter[str] = field(default_factory=Counter[str])
    """Texts that most of those before in their field decided about, by path."""

    @property
    def unread_share(self) -> float:
        """The share of the characters that no reader read, 0 to 1; labels are not counted."""
        return self.num_unread / max(self.num_characters, 1)

    def add(self, value: object, rollouts: Iterable[LoggedRollout], aside: tuple[str, ...]) -> None:
        """Count a record.

        Args:
            value: The record.
            rollouts: What its reader made of it.
            aside: Paths of fields that the reader leaves out on purpose.
        """
        unread = unread_of(value, record_field(aside), rollouts)
        self.num_records += 1
        self.num_characters += unread.num_characters
        if unread.guessed:
            self.guessed += unread.guessed
        fields: dict[str, int] = {}
        for place, text in unread.texts:
            fields[place.path] = fields.get(place.path, 0) + len(text)
            self.num_unread += len(text) if len(text.split(maxsplit=1)) > 1 else 0
        for path, number in fields.items():
            self._count(path, 1, number)

    def take(self, other: "Coverage") -> None:
        """Add what was counted elsewhere."""
        self.num_records += other.num_records
        self.num_characters += other.num_characters
        self.num_unread += other.num_unread
        self.guessed += other.guessed
        for path, count in other.unread.items():
            self._count(path, count.num_records, count.num_characters)

    def _count(self, path: str, num_records: int, num_characters: int) -> None:
        if path not in self.unread and len(self.unread) >= _MOST_FIELDS:
            path = _REST
        count = self.unread.setdefault(path, FieldCount())
        count.num_records = min(count.num_records + num_records, self.num_records)
        count.num_characters += num_characters

    def sentences(self) -> list[str]:
        """Return what was not read, the longest first: each field, its records, and its share."""
        order = sorted(self.unread.items(), key=lambda item: -item[1].num_characters)
        return [
            f"`{path}`: {count.num_records:,} of {self.num_records:,} records, "
            f"{count.num_characters / max(self.num_characters, 1):.1%} of their text"
            for path, count in order
        ]
