"""Verdicts beside a log: files whose names say that they tell how rollouts ended."""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from graphcredit.collector.importers.logs.files import kind_of, stem_of
from graphcredit.collector.importers.logs.records import read_records
from graphcredit.collector.importers.recognition import recognised
from graphcredit.collector.importers.rules.verdicts import SUFFIXES, TEXTS, WORDS, verdicts_of
from graphcredit.collector.importers.sources import LogFile, LogSource, placed
from graphcredit.store.errors import InputError

_NAMES = re.compile(rf"(?i)(.+[-_.])?({WORDS})[a-z]*([-_. ].*)?")
"""Names of files that may have verdicts, without their suffix."""

_FOLDERS = re.compile(r"(?i)(eval[a-z]*|verifier|verdicts?|rewards?|scores?|reports?|results?)")
"""Names of folders beside a log whose files may have them."""

_MOST_BYTES = 64 << 20


def with_verdicts(log: LogSource) -> LogSource:
    """Return a log whose files know the verdicts beside them, unless `--verdicts` names others.

    One verdict alone is of the only log below its folder; a table is of all logs below its folder.
    In a folder of verdicts, those are of the logs around it; in a further folder there, of those
    that have its name.
    """
    if log.options.verdicts is not None:
        return log
    paths = [path for path in _candidates(log.source) if not _is_log(path, log)]
    found = set(filter(_is_plain, paths))
    named = {file.path for file in log.files} - found  # as files that are no logs
    names = tuple(dict.fromkeys(path.name for path in paths if path not in named))
    if not found:
        return replace(log, beside=names)
    files = list(placed([file for file in log.files if file.path not in found]))
    numbers = Counter(folder for file in files for folder in file.path.parents)
    by_folder: defaultdict[Path, list[Path]] = defaultdict(list)
    without_log: list[Path] = []
    for path in filter(found.__contains__, paths):
        folder = path.parent if numbers[path.parent] else _judged(path.parent, log.source)
        if not numbers[folder]:
            without_log.append(path)
            continue
        is_alone = verdicts_of(path).alone is not None and not _is_named(path, folder)
        if not is_alone or numbers[folder] == 1 or _num_logs(folder, files, log) == 1:
            by_folder[folder].append(path)
    judged = tuple(_judged_files(files, by_folder))
    return replace(log, files=judged, beside=names, without_log=tuple(without_log))


def _judged_files(files: list[LogFile], by_folder: dict[Path, list[Path]]) -> Iterator[LogFile]:
    for file in files:
        names = {*file.path.parent.parts, stem_of(file.path)}
        paths = [
            path
            for folder in file.path.parents
            for path in by_folder.get(folder, ())
            if not _is_named(path, folder) or path.parent.name in names
        ]
        yield replace(file, place=replace(file.place, verdicts=tuple(paths)))


def _candidates(source: Path) -> Iterator[Path]:
    """Yield the files of a folder, or beside a file, that may have verdicts by their names."""
    is_folder = source.is_dir()
    top = source if is_folder else source.parent
    for folder, folders, names in os.walk(top):
        is_of_verdicts = folder != str(top) and _FOLDERS.fullmatch(Path(folder).name)
        if not is_folder:
            folders[:] = [name for name in folders if _FOLDERS.fullmatch(name)]
        for name in sorted(names):
            path = Path(folder, name)
            is_named = is_of_verdicts or _NAMES.fullmatch(stem_of(path))
            is_known = kind_of(path) in SUFFIXES and path != source and path.is_file()
            if is_known and is_named:
                yield path


def _is_plain(path: Path) -> bool:
    """Return whether verdicts can be read from a file, which is no larger than `_MOST_BYTES`."""
    try:
        if is_small := path.stat().st_size <= _MOST_BYTES:
            verdicts_of(path)
    except (InputError, OSError):
        return False
    return is_small


def _is_log(path: Path, log: LogSource) -> bool:
    if kind_of(path) in TEXTS:
        return False
    return recognised(read_records(path, log.options.record_bytes), log).format is not None


def _judged(folder: Path, source: Path) -> Path:
    """Return the folder whose logs a file judges: that around a folder of verdicts."""
    inside = (each for each in (folder, *folder.parents) if source in each.parents)
    of_verdicts = next((each for each in inside if _FOLDERS.fullmatch(each.name)), None)
    return folder if of_verdicts is None else of_verdicts.parent


def _is_named(path: Path, folder: Path) -> bool:
    """Return whether the folder of a file in a folder of verdicts says what it judges."""
    return len(path.parent.relative_to(folder).parts) > 1


def _num_logs(folder: Path, files: list[LogFile], log: LogSource) -> int:
    """Return the number of logs below a folder; 2 stands for more."""
    number = 0
    for file in files:
        if folder in file.path.parents:
            number += _is_log(file.path, log)
            if number > 1:
                break
    return number
