"""Verdicts in other files: a report of SWE-bench, a table of ids and scores, or one score alone."""

import io
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from graphcredit.collector.importers.logs.files import (
    LINES,
    MAX_RECORD_BYTES,
    NO_FILE,
    Record,
    RowError,
    broken,
    decompressed,
    kind_of,
    stem_of,
)
from graphcredit.collector.importers.logs.json_list import list_items, values
from graphcredit.collector.importers.logs.jsonl import BEFORE_JSON
from graphcredit.collector.importers.logs.places import TRIES, names_of_path
from graphcredit.collector.importers.logs.records import sound_records
from graphcredit.collector.importers.messages.rollout import LoggedRollout
from graphcredit.collector.importers.messages.values import (
    RecordError,
    as_number,
    as_text,
    as_verdict,
    fields_of,
    items_of,
    parse_number,
    snake_case,
)
from graphcredit.store.errors import InputError, PathError

IDS = (
    *("trajectory_id", "traj_id", "rollout_id", "trial_id", "session_id", "conversation_id"),
    *("episode_id", "uuid", "run_id", "session", "conversation", "file", "file_name", "file_path"),
    *("path", "log", "name", "trajectory", "rollout", "episode", "id", "key", "instance_id"),
    *("task_id", "problem_id", "example_id", "question_id", "sample_id", "instance", "task"),
)
"""Fields that name what a verdict is about, the most particular first, in any capitals."""

SCORES = (
    *("resolved", "success", "is_success", "solved", "passed", "correct", "is_correct", "won"),
    *("score", "reward", "grade", "total_reward", "final_score", "verdict", "value", "result"),
    "outcome",
)
"""Fields that may have a verdict, the first one that has one decides."""

NAME = "verdict"
"""The score under which rules of success and rewards know the number of a verdict."""

ROWS = ("row", "index", "idx", "row_index", "row_number", "line", "line_number")
"""Fields that number the rows of the log, where nothing else says what a verdict is about."""

KEYS = "the keys of an object"
"""Stands for the field of the ids, where an object has ids as keys."""

_WITHIN = "the keys of objects in an object"
"""Stands for it, where objects in an object have them: `large/mug/0` of model, task and try."""

WORDS = (
    "eval|result|report|verdict|reward|score|grade|outcome|resolved|success|passed|judge|summary"
    "|status"
)
"""Words in names of files that may have verdicts."""

TEXTS = (".txt", "")
"""Kinds of files that hold one number or word."""

SUFFIXES = (*TEXTS[:1], ".json", *LINES, ".csv", ".tsv", ".parquet")
"""Files of a folder of verdicts."""

_MOST_IDS = 1_000_000
"""Each process that reads a log has them in memory, by about 200 bytes each."""

_MOST_TEXT = 1_000
"""Bytes of a file that is one number or word."""

_SCORES = {name: rank for rank, name in enumerate(SCORES)}
ID_NAMES = {name: rank for rank, name in enumerate(IDS)}
"""Names of ids in snake case, with their places in the order."""

_FILES = ID_NAMES["file"]
"""Names before it are of one trajectory; those behind may be of a task."""

_TASKS = ("task", "task_id", "instance_id", "instance", "problem_id", "name")
_PLAYERS = ("model", "model_name", "agent", "policy", "config", "system", "run", "run_id")
"""Fields that may say who played, where several played the same tasks."""

_NESTED = ("info", "metadata", "meta", "instance", "extra_info")
_REPORTS = ("report", "test_result")
_FAILED = ("unresolved_ids", "unresolved", "empty_patch_ids", "no_generation")
_UNJUDGED = ("error_ids", "incomplete_ids")
"""Lists of SWE-bench's report: ids that no test has judged."""
_ONLY_WINS = {"resolved", "no_generation", "no_logs"}
"""Lists of SWE-bench's table of experiments: it names no failures that were judged."""

UNNAMED = "no list"
"""Stands for the field of the ids of a failure that no list names."""

Verdict = bool | float
"""Whether it succeeded, or a score."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdicts:
    """What files say of trajectories."""

    by_field: Mapping[str, Mapping[str, Verdict]]
    """Each field that names what the verdicts are about, to these names and their verdicts."""
    scores: tuple[str, ...]
    """The fields that the verdicts were taken from."""
    alone: Verdict | None = None
    """The verdict of a file that has one, and names nothing that it is about."""
    are_others_failed: bool = False
    """Whether what no list names has failed."""

    def judged(self, rollout: LoggedRollout) -> tuple[LoggedRollout, tuple[str, str] | None]:
        """Return a rollout with its verdict in place of the log's, and the field and id it is by.

        A rollout without a verdict is returned as it is.
        """
        for name in dict.fromkeys(_names(rollout)):
            for ids, verdicts in self.by_field.items():
                if name in verdicts:
                    return with_verdict(rollout, verdicts[name]), (ids, name)
        if self.are_others_failed:
            failed = with_verdict(rollout, False)
            return replace(failed, notes=(*failed.notes, _OTHERS)), (UNNAMED, "")
        return rollout, None

    @property
    def rows(self) -> set[int]:
        """The ids, where they are the numbers of rows, from 0 or 1 on; else none."""
        for ids in self.by_field.values():
            numbers = {int(name) for name in ids if name.isdecimal()}
            first = min(numbers, default=2)
            if first < 2 and numbers == {*range(first, first + len(ids))}:
                return numbers
        return set()

    def sentence(self, *fields: str) -> str:
        """Return which fields were taken for ids, all by default, and which for verdicts."""
        quoted = [name if " " in name else f"`{name}`" for name in fields or self.by_field]
        scores = "`, `".join(self.scores)
        return f"ids: {', '.join(quoted)}" + f"; verdicts: `{scores}`" * bool(scores)


_OTHERS = "verdicts: rollouts that are in no list beside `resolved` failed, as SWE-bench counts"


def with_verdict(rollout: LoggedRollout, verdict: Verdict) -> LoggedRollout:
    """Return a rollout that a verdict judges in place of the log's."""
    rewards = {**rollout.rewards, NAME: float(verdict)}
    success = verdict if isinstance(verdict, bool) else None
    return replace(rollout, reward=float(verdict), success=success, rewards=rewards, is_claim=False)


def _names(rollout: LoggedRollout) -> Iterator[str]:
    """Yield the names of a rollout, the most particular first."""
    if rollout.place.row:
        yield rollout.place.row
        return
    if rollout.trajectory_id:
        yield rollout.trajectory_id
    found: dict[int, list[str]] = {}
    tries: list[str] = []
    players: list[str] = []
    for part in (rollout.record, *(fields_of(rollout.record.get(name)) for name in _NESTED)):
        for name, value in part.items():
            if isinstance(value, str | int) and not isinstance(value, bool):
                short_name = snake_case(name)
                if short_name in ID_NAMES:
                    found.setdefault(ID_NAMES[short_name], []).append(str(value))
                tries += [str(value)] * (short_name in TRIES)
                players += [str(value)] * (short_name in _PLAYERS)
    ranks = sorted(found)
    yield from (name for rank in ranks if rank < _FILES for name in found[rank])
    tasks = [name for name in (rollout.task, rollout.group, rollout.place.task) if name]
    tasks += [name for rank in ranks if rank > _FILES for name in found[rank]]
    tries += rollout.place.tries
    of_tries = [f"{task}{by}{number}" for by in "/:" for task in tasks for number in tries]
    yield from (f"{player}/{name}" for player in players for name in (*of_tries, *tasks))
    yield from (*of_tries, *rollout.place.numbered)
    yield from names_of_path(rollout.place.absolute)
    yield from (name for rank in ranks if rank >= _FILES for name in found[rank])
    yield from filter(None, (rollout.label, *tasks))


@dataclass(slots=True)
class _Table:
    """Verdicts while they are read."""

    by_field: dict[str, dict[str, Verdict]] = field(default_factory=dict[str, dict[str, Verdict]])
    twice: dict[str, str] = field(default_factory=dict[str, str])
    """Fields of which one name has two verdicts, and where."""
    scores: dict[str, None] = field(default_factory=dict[str, None])
    alone: list[Verdict] = field(default_factory=list[Verdict])
    are_others_failed: bool = False
    num_ids: int = 0

    def add(self, ids: Mapping[str, str], score: str, verdict: Verdict, where: str) -> None:
        """Add a verdict.

        Raises:
            RecordError: There are too many.
        """
        self.scores.update({score: None} if score else {})
        for name, text in ids.items():
            if name in self.twice:
                continue
            known = self.by_field.setdefault(name, {})
            if known.setdefault(text, verdict) != verdict:
                self.twice[name] = (
                    f"{where} is another verdict without a name: each of several must have a "
                    f"field that says what it is of ({', '.join(IDS)})"
                    if _ALONE in ids
                    else f"{where}: {text} must have one verdict: it has two. Fields that name the "
                    "try, the model or the file tell them apart"
                )
                self.num_ids -= len(self.by_field.pop(name))
        self.num_ids = sum(map(len, self.by_field.values()))
        if self.num_ids > _MOST_IDS:
            raise RecordError(
                f"a file of verdicts must have at most {_MOST_IDS:,} ids: this one has "
                "more. Cut it and the log into parts, and import these one by one"
            )


@lru_cache(maxsize=64)
def verdicts_of(path: Path) -> Verdicts:
    """Return the verdicts of a file, or of all files of a folder: JSON, JSONL, CSV, text, tables.

    Raises:
        PathError: There is no such file.
        InputError: It has no verdicts, or cannot be read.
    """
    table = _Table()
    if not path.exists():
        raise PathError(f"--verdicts must be a file or a folder: there is none at {path}")
    for file in _files(path) if path.is_dir() else (path,):
        _read(file, path if path.is_dir() else path.parent, table)
    if not table.by_field and table.twice:
        raise InputError(next(iter(table.twice.values())))
    order = sorted(table.by_field, key=lambda name: ID_NAMES.get(snake_case(name), -1))
    if not order:
        raise InputError(
            f"{path} must have verdicts: resolved_ids, an object of ids and scores, rows with an "
            f"id ({', '.join(IDS)}) and a score ({', '.join(SCORES)}), or one number or word alone"
        )
    return Verdicts(
        by_field={name: table.by_field[name] for name in order},
        scores=tuple(table.scores),
        alone=table.alone[0] if len(table.alone) == 1 else None,
        are_others_failed=table.are_others_failed,
    )


def _files(folder: Path) -> Iterator[Path]:
    for where, _, names in os.walk(folder):
        for path in (Path(where, name) for name in sorted(names)):
            if kind_of(path) in SUFFIXES:
                if not path.is_file():
                    raise InputError(f"{path}: {NO_FILE}. Remove it")
                yield path


def _read(path: Path, root: Path, table: _Table) -> None:
    """Add the verdicts of a file to a table."""
    for record in _records(path):
        if isinstance(record.value, RowError):
            raise InputError(f"{record.where}: {record.value}")
        try:
            for ids, score, verdict in _of_value(record.value, path, root):
                table.add(ids, score, verdict, record.where)
                if _ALONE in ids:
                    table.alone.append(verdict)
            lists = fields_of(record.value)
            is_list_of_wins = isinstance(lists.get("resolved"), list)
            table.are_others_failed |= is_list_of_wins and lists.keys() <= _ONLY_WINS
        except RecordError as error:
            raise InputError(f"{record.where}: {error}") from None


def _records(path: Path) -> Iterator[Record]:
    """Yield the records of a file, of which a few megabytes are in memory."""
    kind = kind_of(path)
    try:
        if kind in TEXTS:
            with path.open("rb") as raw:
                text = decompressed(raw, path).read(_MOST_TEXT + 1).decode(errors="replace").strip()
            yield Record(path=path, place="", value=text, share=1.0)
        elif kind in (".json", *LINES):
            yield from _json_records(path)
        else:
            yield from sound_records(path, "--verdicts")
    except (EOFError, OSError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        yield broken(path, "", error)


def _json_records(path: Path) -> Iterator[Record]:
    """Yield the items of a JSON list, or values that follow one another."""
    with path.open("rb") as raw:
        stream = io.BufferedReader(cast("Any", decompressed(raw, path)), _MOST_TEXT)
        is_list = stream.peek(_MOST_TEXT).lstrip(BEFORE_JSON).startswith(b"[")
        items = (list_items if is_list else values)(stream.read, MAX_RECORD_BYTES)
        number, noun = 0, "item" if is_list else "object"
        try:
            for number, value in enumerate(items, start=1):
                is_first = number == 1 and not is_list
                place = "" if is_first else f"{noun} {number}"
                yield Record(path=path, place=place, value=value, share=1.0)
        except ValueError as error:
            reason = RowError(f"it must be JSON: {error}")
            yield Record(path=path, place=f"{noun} {number + 1}", value=reason, share=1.0)


_ALONE = "the folder"
"""Stands for the field of the ids, where a file has one verdict alone: it is of its folder."""

_OF_LOG = re.compile(rf"(?i)(?!{WORDS})(.+?)[-_.](?:{WORDS})[a-z]*")
"""How a file is named whose verdict is of the log beside it: `0.result`, `try1_reward`."""

_Found = tuple[Mapping[str, str], str, Verdict]
"""Ids by field, the field of the verdict, and the verdict."""


def _of_value(value: object, path: Path, root: Path) -> Iterator[_Found]:
    """Yield the verdicts of a record; one that names nothing is of its file and folder."""
    found = list(_named(value))
    yield from found
    if found or isinstance(value, list):
        return
    row = fields_of(value)
    score, verdict = _score_of(row) if row else ("", _verdict(value))
    if verdict is None:
        return
    number = next((name for name in row if snake_case(name) in TRIES), None)
    if number is not None:
        yield {f"{_ALONE}+{number}": f"{path.parent.absolute()}/{row[number]}"}, score, verdict
        return
    of_log = _OF_LOG.fullmatch(stem_of(path))
    place = path.parent.relative_to(root) / (of_log[1] if of_log else stem_of(path))
    ids = {"the file": place.as_posix()}
    if of_log is None:
        ids |= {_ALONE: path.parent.absolute().as_posix()}
        folder = place.parent.as_posix()
        ids |= {"the folder's name": folder} if folder != "." else {}
    numbers = {name: str(number) for name, number in row.items() if snake_case(name) in ROWS}
    yield ids | numbers, score, verdict


def _named(value: object, outer: str = "") -> Iterator[_Found]:
    """Yield the verdicts of a value that names what they are about, below outer names."""
    row = fields_of(value)
    if isinstance(row.get("resolved_ids", row.get("resolved")), list):
        yield from (({KEYS: name}, "", verdict) for name, verdict in _of_report(row))
        return
    if ids := _ids_of(row):
        score, verdict = _score_of(row)
        if verdict is None:
            score, verdict = _only_other(row)
        if verdict is not None:
            yield ids, score, verdict
            return
    if isinstance(value, list):
        yield from (found for item in items_of(value) for found in _named(item))
        return
    parts = [
        _named(part, f"{outer}{name}/")
        for name, part in row.items()
        if isinstance(part, Mapping | list) and _inner(part) is None
    ]
    if inner := [each for part in parts for each in part]:
        yield from inner  # of an object around them
    elif not any(snake_case(name) in _SCORES for name in row):
        for name, part in row.items():
            if (verdict := _verdict(part)) is not None:
                within = {_WITHIN: f"{outer}{name}"} if outer else {}
                yield {KEYS: name, **within}, "", verdict


def _ids_of(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of a row that may name what it is about, and a task with its try."""
    texts = {
        name: as_text(value) or ""
        for name, value in row.items()
        if isinstance(value, str | int) and not isinstance(value, bool) and value != ""
    }
    ids = {
        name: text.removeprefix("./")
        for name, text in texts.items()
        if snake_case(name) in ID_NAMES
    }
    parts = (_PLAYERS, _TASKS, TRIES)
    player, task, number = (
        next((n for n in texts if snake_case(n) in some), None) for some in parts
    )
    for names in ((player, task, number), (task, player, number), (task, number)):
        known = dict.fromkeys(name for name in names if name is not None)
        if task in known and len(known) > 1:
            ids["+".join(known)] = "/".join(texts[name] for name in known)
    return ids


def _of_report(report: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield the verdicts of SWE-bench's report, and of OpenHands' `output.report.json`."""
    lists = {n: list(map(str, items_of(ids))) for n, ids in report.items() if isinstance(ids, list)}
    resolved = set(lists.get("resolved_ids", lists.get("resolved", [])))
    names = _FAILED if "unresolved_ids" in lists else lists.keys() - set(_UNJUDGED)
    failed = {name for each in names for name in lists.get(each, [])}
    if names is _FAILED and (both := sorted(resolved & failed)):
        raise RecordError(f"{both[0]} must be resolved or not: it is in both lists")
    failed -= resolved
    unjudged = {name for each in _UNJUDGED for name in lists.get(each, [])}
    yield from ((name, True) for name in sorted(resolved))
    yield from ((name, False) for name in sorted(failed - unjudged))


def _score_of(row: Mapping[str, Any]) -> tuple[str, Verdict | None]:
    """Return the field of a row, or of a report in it, that has its verdict, and the verdict."""
    names = sorted(
        (n for n in row if snake_case(n) in _SCORES), key=lambda n: _SCORES[snake_case(n)]
    )
    wrong: RecordError | None = None
    for name in names:
        try:
            if (verdict := _verdict(row[name])) is not None:
                return name, verdict
        except RecordError as error:
            wrong = wrong or error
    if wrong is not None:
        raise wrong
    inner = next((fields_of(row[name]) for name in _REPORTS if name in row), None)
    return ("", None) if inner is None else _score_of(inner)


def _only_other(row: Mapping[str, Any]) -> tuple[str, Verdict | None]:
    """Return the field beside the id, in a table of two columns."""
    others = [name for name in row if snake_case(name) not in ID_NAMES]
    return (others[0], _verdict(row[others[0]])) if len(others) == 1 else ("", None)


def _inner(value: object) -> Verdict | None:
    return _score_of(fields_of(value))[1]


def _verdict(value: object) -> Verdict | None:
    """Return what a value says, also as a word or the text of a number; None if nothing."""
    if isinstance(value, str):
        word = as_verdict(value)
        value = parse_number(value) if word is None else word
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return as_number(value, "a score")
    return _inner(value) if isinstance(value, Mapping) else None
