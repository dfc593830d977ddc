"""Tell copies of a trajectory from equal trajectories."""

from collections import Counter
from dataclasses import replace
from hashlib import blake2b

from graphcredit.collector.importers.messages.rollout import Omission
from graphcredit.collector.importers.messages.values import RecordError
from graphcredit.collector.importers.trajectory import ImportedTrajectory

COPY = Omission(reason="copy of a trajectory that was read before")


class LengthError(RecordError):
    """An id was read before with other steps, of which these may have more, or fewer."""


class Copies:
    """Knows the trajectories that were read so far, by about 100 bytes each.

    An id of the log may occur once. Without one, equal records of one file are several rollouts,
    while the same record in another file is a copy, for example in a folder `effective`.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, int | bytes] = {}
        """Digest of an id to the file it was first read in, or to the content under an own id."""
        self._again: Counter[bytes] = Counter()
        """How often an id was read again in the present file."""
        self._file = 0

    def named(self, made: ImportedTrajectory) -> ImportedTrajectory | None:
        """Return a trajectory with an id of its own; None if it is a copy.

        Args:
            made: The trajectory; those of a file come one after the other.

        Raises:
            LengthError: An earlier one of its id has other steps: it may be longer, or shorter.
            RecordError: One whose id is of its content has its id.
        """
        file = made.origin.file
        if file != self._file:
            self._again.clear()
            self._file = file
        key = _key(made)
        if key not in self._known:
            self._known[key] = made.content if made.has_own_id else file
            return made
        if made.has_own_id or isinstance(self._known[key], bytes):
            if self._known[key] == made.content:
                return None
            raise LengthError(
                f"the id of a trajectory must be unique: {made.trajectory_id!r} is that of an "
                "earlier one with other steps, and neither goes on from the other"
            )
        self._again[key] += 1
        number = self._again[key] + (self._known[key] == file)
        if number == 1:
            return None
        again = replace(made, trajectory_id=f"{made.trajectory_id}.{number}")
        is_new = self._known.setdefault(_key(again), file) == file
        return again if is_new else None


def _key(made: ImportedTrajectory) -> bytes:
    name = f"{made.run_id}/{made.iteration}/{made.trajectory_id}"
    return blake2b(name.encode(), digest_size=16).digest()
