"""Tell copies of a trajectory from equal trajectories."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from hashlib import blake2b

from graphcredit.collector.importers.messages.rollout import Omission
from graphcredit.collector.importers.messages.values import RecordError
from graphcredit.collector.importers.trajectory import ImportedTrajectory

COPY = Omission(reason="copy of a rollout that was read before")


class LengthError(RecordError):
    """An id was read before with other steps, of which these may have more, or fewer."""


class Copies:
    """Knows the trajectories that were read so far, by about 100 bytes each.

    An id of the log may occur once. Without one, equal records are several rollouts: an agent may
    do the same again. A record of another file is a copy only if it has an id or a time that no
    two rollouts have, as in a folder `effective` of what a folder `all` has.
    """

    def __init__(self, *, drop_equal: bool = False) -> None:
        """Know none.

        Args:
            drop_equal: Whether equal records of other files are copies, whatever they have.
        """
        self._drop_equal = drop_equal
        self._known: dict[bytes, int | bytes] = {}
        """Digest of an id to the file it was first read in, or to the content under an own id."""
        self._more: Counter[bytes] = Counter()
        """How many trajectories beyond the first have an id that is made of their content."""
        self._in_file: Counter[bytes] = Counter()
        """How often such an id was read in the present file."""
        self._file = 0
        self.num_equal = 0
        """Trajectories that are equal to one of another file, and are no copies."""

    def named(
        self, made: ImportedTrajectory, texts: Callable[[], Iterable[str]]
    ) -> ImportedTrajectory | None:
        """Return a trajectory with an id of its own; None if it is a copy.

        Args:
            made: The trajectory; those of a file come one after the other.
            texts: Returns the JSON texts of what the log has of it.

        Raises:
            LengthError: An earlier one of its id has other steps: it may be longer, or shorter.
            RecordError: One whose id is of its content has its id.
        """
        file = made.origin.file
        if file != self._file:
            self._in_file.clear()
            self._file = file
        key = _key(made)
        self._in_file[key] += not made.has_own_id
        if key not in self._known:
            self._known[key] = made.content if made.has_own_id else file
            return made
        if made.has_own_id or isinstance(self._known[key], bytes):
            if self._known[key] == made.content:
                return None
            raise LengthError(
                f"the id of a rollout must be unique: {made.trajectory_id!r} is that of an "
                "earlier one with other steps, and neither goes on from the other"
            )
        may_be_copy = self._in_file[key] <= self._more[key] + 1  # of one in another file
        if may_be_copy and (self._drop_equal or any(map(_is_marked, texts()))):
            return None
        self._more[key] += 1
        self.num_equal += made.origin.file != self._known[key]
        if made.is_by_file:
            return made
        return replace(made, trajectory_id=f"{made.trajectory_id}.{self._more[key] + 1}")


_PAIR = re.compile(
    r'(?i)(?<!\\)"([\w.-]*(?:id|time|stamp|date|created|created_?at|ts))": ?"?([^",\\}\]]{8,})'
)
_COMMON = (
    *("task", "instance", "group", "problem", "question", "example", "prompt", "model", "item"),
    *("data", "env", "game", "scenario", "user", "agent", "parent", "seed", "valid"),
)
"""How the names of fields begin that rollouts of a task have in common."""

_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d|1\d{9}")
_WORD = re.compile(r"[A-Za-z0-9]{8,}")
_COUNTED = re.compile(r"[A-Za-z]*\d{0,7}")


def _is_marked(text: str) -> bool:
    """Return whether the JSON text of a record has an id that was drawn, or a time."""
    return any(
        _TIME.match(value) or any(not _COUNTED.fullmatch(word) for word in _WORD.findall(value))
        for name, value in _PAIR.findall(text)
        if not name.lower().startswith(_COMMON)
    )


def _key(made: ImportedTrajectory) -> bytes:
    own = made.content if made.is_by_file else made.trajectory_id
    name = f"{made.run_id}/{made.iteration}/{own}"
    return blake2b(name.encode(), digest_size=16).digest()
