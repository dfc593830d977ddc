"""What a store remembers of its imports, so that the import of a log that is there reads nothing.

`imports/` of the store has a file for each source and its options, with the report. While this
program, the files that it read, those beside them and the shards of the store have the sizes and
times that they had then, the same import finds nothing new.
"""

import hashlib
import inspect
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.report import ImportReport
from graphcredit.collector.importers.table import all_formats
from graphcredit.store.files.atomic import atomic_path
from graphcredit.store.layout import IMPORTS

_MOST_BESIDE = 10_000
"""Files around a log that is one file, from which it is not remembered: to look takes long."""

_Mark = tuple[int, int, int]
"""The size of a file, when it was written, and when its entry was changed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Import:
    """An import that is done."""

    files: str
    """Digest of the marks of all files that decide what it reads."""
    shards: dict[str, _Mark]
    """The step shards of the store after it."""
    report: ImportReport


_IMPORT = TypeAdapter(_Import)


class Remembered:
    """An import of a source into a store: what is known of the same one before."""

    def __init__(self, source: Path, root: Path, options: ImportOptions) -> None:
        """Look at the files, before any is read.

        Args:
            source: A file, or a folder.
            root: The folder of the store, which may be missing.
            options: What to make of the log.
        """
        self._root = root.absolute()
        self._files = self._digest(source.absolute(), options)
        asked = f"{source.absolute()}\n{options.model_dump_json()}"
        name = hashlib.sha256(asked.encode(errors="surrogatepass")).hexdigest()[:16]
        self._path = self._root / IMPORTS / f"{name}.json"

    def report(self) -> ImportReport | None:
        """Return the report of the import if it finds nothing new; None if it must be made."""
        try:
            before = _IMPORT.validate_json(self._path.read_bytes())
            marks = {name: _mark(self._root / name) for name in before.shards}
        except (OSError, ValidationError):
            return None
        if self._files != before.files or marks != before.shards:
            return None
        report = before.report
        num_there = report.num_trajectories + report.num_already_there
        return replace(report, num_trajectories=0, num_already_there=num_there)

    def keep(self, report: ImportReport) -> None:
        """Remember the report of an import, if the same one would say the same."""
        steps = self._root / "steps"
        shards = {path.relative_to(self._root).as_posix(): _mark(path) for path in _below(steps)}
        if self._files is not None and shards:
            done = _Import(files=self._files, shards=shards, report=report)
            with atomic_path(self._path) as temporary:
                temporary.write_bytes(_IMPORT.dump_json(done))

    def _digest(self, source: Path, options: ImportOptions) -> str | None:
        """Return a digest of the marks of the files; None if there are too many, or one is gone."""
        program = Path(__file__).parents[1]
        paths = [path for path in _below(program) if path.suffix == ".py"]
        paths += {Path(inspect.getfile(row.read)) for row in all_formats()}
        for named in filter(None, (source, options.verdicts)):
            is_file = named.is_file()
            files = _below(named.parent if is_file else named, self._root, all_of=not is_file)
            for number, path in enumerate(files):
                if is_file and number == _MOST_BESIDE:
                    return None
                paths.append(path)
        try:
            marks = sorted((os.fsencode(path), _mark(path)) for path in paths)
        except OSError:
            return None
        return hashlib.sha256(repr(marks).encode()).hexdigest()


def _below(folder: Path, store: Path | None = None, *, all_of: bool = True) -> Iterator[Path]:
    """Yield the files of a folder without a store, and without hidden folders unless all of it."""
    for where, folders, names in os.walk(folder):
        inner = [name for name in folders if all_of or not name.startswith(".")]
        folders[:] = [name for name in inner if Path(where, name) != store]
        yield from (Path(where, name) for name in names)


def _mark(path: Path) -> _Mark:
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns
