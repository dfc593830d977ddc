"""Verdicts in another file: `--verdicts`, a report of SWE-bench or a table of ids and scores."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from graphcredit.collector.importers.logs.records import sound_records
from graphcredit.collector.importers.messages.rollout import LoggedRollout
from graphcredit.collector.importers.messages.values import (
    RecordError,
    as_number,
    as_text,
    as_verdict,
    fields_of,
    first_of,
)
from graphcredit.store.errors import InputError

IDS = (
    *("trajectory_id", "rollout_id", "trial_id", "session_id", "conversation_id", "episode_id"),
    *("uuid", "run_id", "instance_id", "task_id", "problem_id", "example_id", "question_id", "id"),
    *("trajectory", "episode", "instance", "task", "name"),
)
"""Fields that name what a verdict is about, the most particular first."""

SCORES = (
    *("resolved", "success", "is_success", "solved", "passed", "correct", "is_correct"),
    *("score", "reward", "grade", "total_reward", "final_score", "verdict", "value", "result"),
)
"""Fields that may have a verdict."""

NAME = "verdict"
"""The score under which rules of success and rewards know the number of a verdict."""

_MOST_IDS = 1_000_000
"""Each process that reads a log has them in memory, by about 200 bytes each."""

_NESTED = ("info", "metadata", "meta", "instance", "extra_info")
_REPORTS = ("report", "test_result")
_FAILED = ("unresolved_ids", "unresolved", "empty_patch_ids", "no_generation")
_UNJUDGED = ("error_ids", "incomplete_ids")
"""Lists of SWE-bench's report: ids that no test has judged."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What a file says of trajectories."""

    by_id: Mapping[str, bool | float]
    """A verdict, or a score."""

    def judged(self, rollout: LoggedRollout) -> tuple[LoggedRollout, str | None]:
        """Return a rollout with its verdict in place of the log's, and the id that it has there.

        A rollout without a verdict is returned as it is.
        """
        name = next((name for name in _names(rollout) if name in self.by_id), None)
        if name is None:
            return rollout, None
        verdict = self.by_id[name]
        rewards = {**rollout.rewards, NAME: float(verdict)}
        success = verdict if isinstance(verdict, bool) else None
        judged = replace(rollout, reward=float(verdict), success=success, rewards=rewards)
        return judged, name


def _names(rollout: LoggedRollout) -> Iterator[str]:
    """Yield the names of a rollout, the most particular first."""
    if rollout.trajectory_id:
        yield rollout.trajectory_id
    parts = [rollout.record, *(fields_of(rollout.record.get(name)) for name in _NESTED)]
    for name in IDS:
        for part in parts:
            value = part.get(name)
            if isinstance(value, str | int):
                yield str(value)
    yield from filter(None, (rollout.label, rollout.task, rollout.group))


@lru_cache(maxsize=1)
def verdicts_of(path: Path) -> Verdicts:
    """Return the verdicts of a file: JSON, JSONL, CSV or a table.

    Raises:
        PathError: There is no such file.
        InputError: It has no verdicts.
    """
    by_id: dict[str, bool | float] = {}
    for record in sound_records(path, "--verdicts"):
        try:
            for name, verdict in _of_value(record.value):
                if by_id.setdefault(name, verdict) != verdict:
                    raise RecordError(f"{name} must have one verdict: it has two")
                if len(by_id) > _MOST_IDS:
                    raise RecordError(
                        f"a file of verdicts must have at most {_MOST_IDS:,} ids: this one has "
                        "more. Cut it and the log into parts, and import these one by one"
                    )
        except RecordError as error:
            raise InputError(f"{record.where}: {error}") from None
    if not by_id:
        raise InputError(
            f"{path} must have verdicts: resolved_ids, an object of ids and scores, or rows with "
            f"an id ({', '.join(IDS)}) and a score ({', '.join(SCORES)})"
        )
    return Verdicts(by_id)


def _of_value(value: object) -> Iterator[tuple[str, bool | float]]:
    row = fields_of(value)
    if isinstance(row.get("resolved_ids", row.get("resolved")), list):
        yield from _of_report(row)
    elif (name := as_text(first_of(row, IDS))) is not None and (
        verdict := _verdict(_score_of(row, _only_other(row)))
    ) is not None:
        yield name, verdict
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _of_value(item)
    else:
        parts = [p for p in row.values() if isinstance(p, Mapping | list) and _verdict(p) is None]
        if inner := [each for part in parts for each in _of_value(part)]:
            yield from inner  # of an object around them
            return
        for name, part in row.items():
            if (verdict := _verdict(part)) is not None:
                yield name, verdict


def _of_report(report: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield the verdicts of SWE-bench's report, and of OpenHands' `output.report.json`."""
    lists = {
        name: list(map(str, cast("list[Any]", ids)))
        for name, ids in report.items()
        if isinstance(ids, list)
    }
    resolved = set(lists.get("resolved_ids", lists.get("resolved", [])))
    names = _FAILED if "unresolved_ids" in lists else lists.keys() - set(_UNJUDGED)
    failed = {name for each in names for name in lists.get(each, [])}
    if names is _FAILED and (both := sorted(resolved & failed)):
        raise RecordError(f"{both[0]} must be resolved or not: it is in both lists")
    failed -= resolved
    unjudged = {name for each in _UNJUDGED for name in lists.get(each, [])}
    yield from ((name, True) for name in sorted(resolved))
    yield from ((name, False) for name in sorted(failed - unjudged))


def _score_of(row: Mapping[str, Any], other: Any = None) -> Any:
    """Return the score of a row, or of a report in it; else another value."""
    score = first_of(row, SCORES)
    if score is not None and not isinstance(score, Mapping | list):
        return score
    inner = next((fields_of(row[name]) for name in _REPORTS if name in row), None)
    return other if inner is None else _score_of(inner)


def _only_other(row: Mapping[str, Any]) -> Any:
    """Return the value beside the id, in a table of two columns."""
    others = [value for name, value in row.items() if name not in IDS]
    return others[0] if len(others) == 1 else None


def _verdict(value: object) -> bool | float | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return as_number(value, "a score")
    if isinstance(value, str):
        verdict = as_verdict(value)
        return _score_in(value) if verdict is None else verdict
    return _verdict(_score_of(fields_of(value))) if isinstance(value, Mapping) else None


def _score_in(text: str) -> float | None:
    """Return the number that a text is; None if it is none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return as_number(number, "a score")
