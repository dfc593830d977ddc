"""Handle a trajectory that is logged again: its steps must equal the stored ones."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from graphcredit.collector.recording.known_trajectories import COMPARED, KnownTrajectory
from graphcredit.collector.recording.shards import step_table
from graphcredit.store.errors import StepRefusedError
from graphcredit.store.files.parse import parse_json
from graphcredit.store.plural import counted

_END = ("terminated", "truncated", "success")


class Again:
    """A sink that compares steps with a stored trajectory, and writes nothing."""

    def __init__(self, known: KnownTrajectory, on_same: Callable[[], None]):
        """Compare with a trajectory of the store.

        Raises:
            StepRefusedError: The stored trajectory is incomplete: the log may have more steps.
        """
        self._known = known
        self._on_same = on_same
        self._num_steps = 0
        problem = _problem(known.rows)
        if problem:
            raise StepRefusedError(
                "trajectory_id must be unique within a run and iteration: it is in "
                f"{known.where} already, {problem}. Give this attempt another id, or leave the id "
                "out. `together` writes whole rollouts or nothing"
            )

    def append(self, row: dict[str, Any], *, is_last: bool) -> None:
        """Compare a step with the stored one."""
        rows = self._known.rows
        index: int = row["step_index"]
        if index >= len(rows):
            raise self._differs(f"has {counted(len(rows), 'step')} there, and this is one more")
        (new,) = step_table([row], "").to_pylist()
        is_end_to_come = index == len(rows) - 1 and not is_last
        names = [c.name for c in COMPARED if not (is_end_to_come and c.name in _END)]
        self._compare({name: new[name] for name in names}, index)
        self._num_steps = index + 1
        if is_last:
            self._on_same()

    def end(self, trajectory_id: str, end: Mapping[str, bool | None]) -> None:
        """Compare the end with the stored one."""
        num_steps = len(self._known.rows)
        if self._num_steps < num_steps:
            raise self._differs(
                f"has {counted(num_steps, 'step')} there, and {self._num_steps} here"
            )
        self._compare(end, num_steps - 1)
        self._on_same()

    def abandon(self, trajectory_id: str) -> None:
        """Expect no more steps of the trajectory; its steps are already in the store."""

    def _compare(self, new: Mapping[str, Any], index: int) -> None:
        differs = _difference(new, self._known.rows[index])
        if differs:
            raise self._differs(differs)

    def _differs(self, how: str) -> StepRefusedError:
        return StepRefusedError(
            "a rollout that is in the store may be logged again only with the same steps: it is "
            f"in {self._known.where} and {how}. Give a different rollout a different id"
        )


def difference(known: KnownTrajectory, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return how a whole trajectory differs from the stored one; empty if it is the same."""
    if len(known.rows) != len(rows):
        return f"has {counted(len(known.rows), 'step')} there, and {len(rows)} here"
    differ = (_difference(new, stored) for new, stored in zip(rows, known.rows, strict=True))
    return next(filter(None, differ), "")


def goes_on(known: KnownTrajectory, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a trajectory has more steps than the stored one, which was logged before.

    What the last stored step led to was not known then, and the log may say more of the whole.
    """
    num_stored = len(known.rows)
    if len(rows) <= num_stored or _problem(known.rows).startswith("and"):
        return False
    for number, (new, stored) in enumerate(zip(rows, known.rows, strict=False), start=1):
        names = _SEEN if number == num_stored else new.keys() - {"extra"}
        if not all(_is_same(name, new[name], stored[name]) for name in names):
            return False
    return True


_SEEN = ("task_id", "step_index", "state", "observation")
"""Columns of a step that are known before its action."""


def differing_columns(known: KnownTrajectory, rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the columns in which two trajectories of equally many steps differ."""
    pairs = list(zip(rows, known.rows, strict=True))
    return tuple(
        name
        for name in rows[0]
        if not all(_is_same(name, new[name], stored[name]) for new, stored in pairs)
    )


def _difference(new: Mapping[str, Any], stored: Mapping[str, Any]) -> str:
    for name, value in new.items():
        if not _is_same(name, value, stored[name]):
            return f"its {name} is {_short(stored[name])} there, {_short(value)} here"
    return ""


def _problem(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return why a stored trajectory is incomplete; empty if it is complete."""
    if [row["step_index"] for row in rows] != list(range(len(rows))):
        return "and its steps there are not 0 … T-1, each once"
    if not (rows[-1]["terminated"] or rows[-1]["truncated"]):
        return f"with {counted(len(rows), 'step')} and no end"
    return ""


def _is_same(name: str, one: Any, other: Any) -> bool:
    if name == "extra" and one != other and one is not None and other is not None:
        with suppress(ValueError):
            return parse_json(one) == parse_json(other)
    return one == other


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:120]}…"
