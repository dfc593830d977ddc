"""Export credit to traces of verifiers v1 and prime-rl: the same files, with `advantages`."""

import json
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphcredit.collector.exporters.episodes import TraceCounts, assign_advantages
from graphcredit.collector.exporters.step_credit import (
    TrajectoryCredit,
    estimators_with_credit,
    read_trajectories,
    shards_to_export,
    text_file,
)
from graphcredit.collector.importers.formats import verifiers_traces
from graphcredit.collector.importers.logs.files import decompressed, is_mistake, kind_of, log_files
from graphcredit.collector.importers.messages.values import MALFORMED
from graphcredit.store.errors import InputError, NothingToExportError, PathError, system_errors
from graphcredit.store.files.atomic import atomic_directory
from graphcredit.store.files.output import output_path, refuse_existing
from graphcredit.store.files.parse import parse_json
from graphcredit.store.layout import Store
from graphcredit.store.parquet.snapshot import unchanged
from graphcredit.store.plural import counted
from graphcredit.store.progress import OnProgress, silent


@dataclass(kw_only=True, slots=True)
class TraceReport:
    """What an export to traces did."""

    estimator: str
    """Whose advantages were written."""
    counts: TraceCounts = field(default_factory=TraceCounts)
    num_files: int = 0
    """Files of traces."""
    num_missing: int = 0
    """Trajectories of the store that no trace was found for."""
    bad_lines: list[str] = field(default_factory=list[str])
    """File, line and reason of each line that could not be read; it was copied as it is."""
    other_files: list[Path] = field(default_factory=list[Path])
    """Files of the folder that are no traces; they were not copied."""


@system_errors()
def export_traces(
    store: Store,
    source: Path,
    target: Path,
    *,
    estimator: str | None = None,
    run_id: str | None = None,
    iteration: int | None = None,
    on_progress: OnProgress = silent,
) -> TraceReport:
    """Write traces again, with the credit of their steps as `advantages`.

    A trace is matched by its id, and by the actions of its steps. Lines without credit are copied
    as they are. The result appears complete or not at all.

    Args:
        store: The store that the traces were imported into.
        source: A file of traces, or a folder that is searched for them.
        target: A file, or for a folder a new or empty one; its files have the names of the source.
        estimator: Whose advantages; may be left out if the store has credit by one.
        run_id: Only trajectories of this run.
        iteration: Only trajectories of this iteration.
        on_progress: Called with the share of the bytes that has been read.

    Raises:
        InputError: There is no credit by that estimator, or the source has no traces, or the target
            is in use.
        NothingToExportError: No message gets advantages; nothing was written.
    """
    shards = shards_to_export(store, run_id, iteration)
    name, *others = estimators_with_credit(shards, estimator)
    if others:
        raise InputError(
            "a message has one advantage per token: name one of the store's estimators with "
            f"--estimator ({', '.join((name, *others))})"
        )
    report = TraceReport(estimator=name)
    files = _trace_files(source, report)
    _check_target(source, target)
    known = unchanged(
        store, lambda: read_trajectories(shards, name), run_id=run_id, iteration=iteration
    )
    total = max(sum(path.stat().st_size for path in files), 1)
    export = _Export(known=known, report=report, on_progress=on_progress, total=total)
    with _outputs(source, target) as output_of:
        for path in files:
            output, final = output_of(path)
            export.write(path, output, final)
        report.num_missing = len(known.keys() - report.counts.matched)
        if not report.counts.num_assigned:
            raise _nothing(store, source, report, known)
    return report


def _trace_files(source: Path, report: TraceReport) -> list[Path]:
    """Return the files with traces; the others are added to the report."""
    if not source.exists():
        raise PathError(f"there is no log at {source}. Check the path")
    files, unreadable = log_files(source)
    if unreadable:
        raise unreadable[0]
    traces = [path for path in files if _has_traces(path)]
    if not traces:
        raise InputError(
            f"{source} must have traces of verifiers v1 (`traces.jsonl`): found none in "
            f"{counted(len(files), 'file')}. `--to turns` writes the credit of other logs"
        )
    report.other_files += [path for path in files if path not in traces]
    return traces


def _has_traces(path: Path) -> bool:
    """Return whether the first sound line of a file is an episode."""
    if kind_of(path) not in (".jsonl", ".ndjson"):
        return False
    with path.open("rb") as raw, decompressed(raw, path) as content:
        try:
            for line in content:
                if line.strip() and not isinstance(value := _parsed(line), ValueError):
                    return verifiers_traces.is_row(value, path)
        except Exception as error:
            if is_mistake(error):
                raise
            return False
    return False


def _parsed(line: bytes) -> Any:
    """Return the JSON value of a line, or a ValueError."""
    try:
        return parse_json(line)
    except ValueError as error:
        return error


def _check_target(source: Path, target: Path) -> None:
    behind, origin = target.resolve(), source.resolve()
    if behind == origin or (source.is_dir() and origin in behind.parents):
        raise InputError(f"the output must be outside of the source: {target} is in {source}")
    if source.is_dir() and target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise InputError(
            f"{target} must be a new directory, or an empty one: name another, or remove it"
        )


@contextmanager
def _outputs(source: Path, target: Path) -> Generator[Callable[[Path], tuple[Path, str]]]:
    """Yield a function from a file of the source to where it is written, and its final name."""
    if not source.is_dir():
        refuse_existing(target)
        with output_path(target) as temporary:
            yield lambda path: (temporary, target.name)
        return
    with atomic_directory(target.resolve(), may_replace=False) as folder:
        yield lambda path: (folder / path.relative_to(source), path.name)


@dataclass(kw_only=True, slots=True)
class _Export:
    known: Mapping[str, TrajectoryCredit]
    report: TraceReport
    on_progress: OnProgress
    total: int
    """Bytes of all files."""
    done: int = 0
    """Bytes of the files that are written."""

    def write(self, path: Path, output: Path, final: str) -> None:
        """Write one file of traces."""
        output.parent.mkdir(parents=True, exist_ok=True)
        with text_file(output, final) as out:
            for number, line in self._lines(path):
                out.write(self._credited(line, path, number))
        self.done += path.stat().st_size
        self.report.num_files += 1

    def _lines(self, path: Path) -> Iterator[tuple[int, bytes]]:
        number = 0
        with path.open("rb") as raw, decompressed(raw, path) as content:
            try:
                for number, line in enumerate(content, start=1):
                    yield number, line
                    self.on_progress("export", (self.done + raw.tell()) / self.total, 1)
            except Exception as error:
                if is_mistake(error):
                    raise
                reason = " ".join(str(error).split())
                self._refuse(path, number + 1, f"the file is damaged here: {reason}")

    def _credited(self, line: bytes, path: Path, number: int) -> bytes:
        """Return a line with advantages; one that gets none as it is."""
        if not line.strip():
            return line
        episode = _parsed(line)
        if isinstance(episode, ValueError):
            self._refuse(path, number, f"it must be JSON: {episode}")
            return line
        if not verifiers_traces.is_row(episode, path):
            self._refuse(path, number, "it must be an episode of verifiers v1")
            return line
        try:
            counts = assign_advantages(episode, self.known, path)
        except MALFORMED as error:
            self._refuse(path, number, f"it must be an episode of verifiers v1: {error}")
            return line
        self.report.counts.add(counts)
        if not counts.num_assigned and not counts.num_replaced:
            return line
        return _json_text(episode) + line[len(line.rstrip(b"\r\n")) :]

    def _refuse(self, path: Path, number: int, reason: str) -> None:
        self.report.bad_lines.append(f"{path}, line {number}: {reason}")


def _json_text(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair, which only an escape can express.
        return json.dumps(value, separators=(",", ":")).encode()


def _nothing(
    store: Store, source: Path, report: TraceReport, known: Mapping[str, TrajectoryCredit]
) -> NothingToExportError:
    counts = report.counts
    reasons = [f"{n:,} traces: {why}" for why, n in counts.unmatched.items()]
    reasons += [f"{n:,} sampled messages: {why}" for why, n in counts.unassigned.items()]
    if counts.num_matched:
        remedy = "`--to turns` writes the credit of traces without tokens"
    else:
        ids = f"ids in the log: {_some(counts.names)}; in the store: {_some(sorted(known))}"
        remedy = f"{ids}. Import it first: `graphcredit import {source} {store.root}`"
    lines = "\n".join([*reasons, *report.bad_lines])
    return NothingToExportError(
        f"no message of {source} has credit by {report.estimator} in {store.root}: nothing was "
        f"written. {remedy}\n{lines}".rstrip()
    )


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "") or "none"
