"""The files of a log."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from graphcredit.collector.importers.logs.files import SUFFIXES, is_archive, log_files, stem_of
from graphcredit.collector.importers.logs.places import (
    NOWHERE,
    Place,
    is_path_term,
    path_rule,
    task_term,
)
from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.prompts import Prompts
from graphcredit.collector.importers.rules.outcomes import rules_of
from graphcredit.collector.importers.rules.verdicts import verdicts_of
from graphcredit.collector.importers.table import format_named
from graphcredit.collector.importers.tally import Tally
from graphcredit.collector.importers.trajectory import ImportedTrajectory
from graphcredit.store.errors import InputError, PathError
from graphcredit.store.layout import check_name
from graphcredit.store.near_names import did_you_mean

_SHOWN_FIELDS = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class LogFile:
    """One file of a log."""

    number: int
    """Its place among the files, from 0."""
    path: Path
    root: Path
    """The folder that the user named, or that has the file: no image outside is read."""
    size: int
    """Bytes."""
    num_bytes_before: int
    """Bytes of the files before."""
    place: Place = NOWHERE
    rows_before: int | None = None
    """What verdicts take from the number of a row, where they name rows."""

    def num_bytes_read(self, share: float) -> float:
        """Return the bytes of the log up to a share of this file."""
        return self.num_bytes_before + share * self.size


@dataclass(frozen=True, kw_only=True, slots=True)
class LogSource:
    """The files of a log."""

    source: Path
    options: ImportOptions
    names: Mapping[str, str]
    """What `--columns` says: the name that a reader knows, to the field of the log."""
    is_folder: bool
    files: tuple[LogFile, ...]
    unreadable: tuple[tuple[str, str], ...]
    """Folders and files in it that cannot be read, and why."""
    beside: tuple[str, ...] = ()
    """Names of the files beside it that have verdicts."""
    without_log: tuple[Path, ...] = ()
    """Those of them below whose folder there is no log."""

    def with_options(self, **values: object) -> "LogSource":
        """Return the log with other values of some options."""
        return replace(self, options=self.options.model_copy(update=values))

    @property
    def num_bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def log_at(source: Path, options: ImportOptions) -> LogSource:
    """Return the files of a log.

    Raises:
        OptionError: An option is not right.
        InputError: The name of the run is none, or the source is an archive.
        PathError: There is no source.
    """
    verdicts_of.cache_clear()  # the files may have changed since the last log
    if not source.exists():
        raise PathError(f"there is no log at {source}. Check the path")
    rules_of(options)
    if options.run is not None:
        check_name("run_id", options.run)
    if options.format is not None:
        format_named(options.format)
    for field in filter(is_path_term, options.names.values()):
        path_rule(field)
    if source.is_file() and is_archive(source):
        raise InputError(
            f"{source} must be unpacked first: it is an archive. Name the folder of its files then"
        )
    files, unreadable = log_files(source)
    root = source if source.is_dir() else source.parent
    return LogSource(
        source=source,
        options=options,
        names=options.names,
        is_folder=source.is_dir(),
        files=tuple(placed(list(_numbered(files, root)))),
        unreadable=tuple((str(error.filename), error.strerror or "") for error in unreadable),
    )


def _numbered(paths: Iterable[Path], root: Path) -> Iterator[LogFile]:
    """Yield the files of a root."""
    num_bytes = 0
    for number, path in enumerate(paths):
        size = path.stat().st_size
        yield LogFile(number=number, path=path, root=root, size=size, num_bytes_before=num_bytes)
        num_bytes += size


def placed(files: Sequence[LogFile]) -> Iterator[LogFile]:
    """Yield files with their places: what the names of files and folders say."""
    bare = [file.path.relative_to(file.root).with_name(stem_of(file.path)) for file in files]
    counts, kinds = Counter(bare), Counter(file.path.suffix for file in files)
    most = next(iter(kinds.most_common(1)), ("", 0))[0]
    paths = [b.as_posix() for b, file in zip(bare, files, strict=True) if file.path.suffix == most]
    term = task_term(paths)
    for file, name in zip(files, bare, strict=True):
        is_unique = counts[name] == 1
        place = Place(
            path=(name if is_unique else file.path.relative_to(file.root)).as_posix(),
            absolute=file.path.absolute().as_posix(),
            is_one_of_several=len(files) > 1,
            task=path_rule(term)(name.as_posix()) if term else None,
            task_by=term or "",
        )
        yield replace(file, place=place)


def refuse_no_log(log: LogSource, tally: Tally) -> None:
    """Raise InputError if no file of a log that was read is one of a known format."""
    if tally.sums.num_files or tally.sums.num_bad_rows:
        return
    others = tally.sums.other_files
    what = f"none of its {len(log.files)} files is one. In {others[0]} " if others else ""
    what = what if log.is_folder else ""
    look = tally.look or f"it has no file that ends in {', '.join(SUFFIXES)}"
    raise InputError(f"{log.source} must be a log of a known format: {what}{look}")


def refuse_missing_columns(log: LogSource, tally: Tally) -> None:
    """Tally the fields that `--columns` names and no record had."""
    missing = sorted(set(log.names.values()) - tally.columns)
    if missing:
        reason = (
            f"a record must have each field that --columns names: none has {', '.join(missing)}"
        )
        tally.refuse(str(log.source), reason)


def refuse_unknown_names(
    options: ImportOptions, made: Sequence[ImportedTrajectory], tally: Tally
) -> None:
    """Raise InputError if none of the first trajectories has what an option names.

    Nothing is written then: without a verdict, for example, all of them would be without credit.
    """
    if not made or tally.success_by:  # they are not the first
        return
    if options.names and not tally.columns:
        raise InputError(
            "import.columns must name fields that the records have: none of the first ones has "
            f"{' or '.join(sorted(options.names.values()))}."
            f"{did_you_mean(min(options.names.values()), _fields_of(made))}"
        )
    if options.success != "auto" and all(each.verdict.by == "nothing" for each in made):
        fields = _fields_of(made)
        raise InputError(
            f"import.success must name what the records have: none of the first {len(made):,} "
            f"rollouts has {options.success!r}. Their numbers and short fields: "
            f"{', '.join(fields[:_SHOWN_FIELDS]) or 'none'}."
            f"{did_you_mean(options.success, fields)}"
        )
    if options.group == "auto":
        prompts = Prompts()
        for each in made:
            prompts.add(each)
        if prompts.are_mixed and (mixed := prompts.sentence()) is not None:
            one = f"--group {prompts.grouped_by} takes them for one all the same"
            raise InputError(f"{mixed}; {one}")
    if options.score != "auto" and all(each.counts["unscored"] for each in made):
        raise InputError(
            f"import.score must name what the records have: none of the first {len(made):,} "
            f"rollouts has {options.score!r}, as a list with a number or null for each turn "
            "or as a number of a message. Give the whole path, such as info.turn_scores"
        )


def _fields_of(made: Sequence[ImportedTrajectory]) -> list[str]:
    """Return the numbers, flags and short fields of the records of trajectories."""
    return list(dict.fromkeys(n for each in made for n in (*each.candidates, *each.labels)))
