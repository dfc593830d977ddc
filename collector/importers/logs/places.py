"""Names of files and folders as data: the path of a file below the folder that was named."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from graphcredit.collector.importers.logs.files import stem_of
from graphcredit.store.errors import OptionError

PATH = "path"
"""How options name the path of a record's file: `path`, `path:N`, `path:-N` or `path:PATTERN`."""

TRIES = frozenset(("try", "trial", "attempt", "run", "seed", "rollout", "sample", "epoch", "rep"))
"""Names of fields, and words in names of files, that number the tries of a task."""

_WORDS = "run|try|trial|attempt|seed|rollout|sample|epoch|episode|ep|rep|repeat|iter|k"
_TRY = re.compile(rf"(?i)(?:^|[^a-z])(?:{_WORDS})[-_. ]?(\d+)(?![a-z])")
_TRY_WORD = re.compile(rf"(?i)(?<![a-z])((?:{_WORDS})[-_. ]?)\d")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a rollout was read."""

    path: str = ""
    """The path of its file below the folder that was named, without the suffixes of its format."""
    absolute: str = ""
    """The whole path of its file."""
    is_one_of_several: bool = False
    """Whether the log has other files."""
    is_only: bool = False
    """Whether its file has no other rollout."""
    verdicts: tuple[Path, ...] = ()
    """Files beside its own that may say how it ended, the nearest first."""
    task: str | None = None
    """What the names of folders or files say that the task is, where tries are told apart so."""
    task_by: str = ""
    """The term that gives it, such as `path:-2`."""
    row: str = ""
    """What a file of verdicts calls its row, where it names nothing else of the log."""

    @property
    def tries(self) -> list[str]:
        """Names and numbers of the tries that the path has."""
        parts = self.path.split("/")
        return [text for part in parts if (found := _TRY.search(part)) for text in (part, found[1])]

    @property
    def numbered(self) -> list[str]:
        """Names of a part or two of the path with the number of the try: `mug/0` of `mug/try_0`."""
        parts = self.path.split("/")
        numbers = [found[1] for part in parts if (found := _TRY.search(part))][-1:]
        others = [part for part in parts if not _TRY.search(part)]
        pairs = [f"{one}/{other}" for one, other in pairwise(others)]
        return [f"{name}/{number}" for number in numbers for name in (*pairs, *others)]


NOWHERE = Place()


def row_of(where: str) -> int | None:
    """Return the number that the place of a record ends in."""
    number = where.rpartition(" ")[2]
    return int(number) if number.isdecimal() else None


def is_path_term(text: str) -> bool:
    """Return whether an option names a part of the path."""
    return text == PATH or text.startswith(f"{PATH}:")


def path_rule(text: str) -> Callable[[str], str | None]:
    """Return the rule that takes a part of a path that has no suffix; None where it has none.

    Args:
        text: `path` for all of it, `path:2` for its second part, `path:-1` for its last, the name
            of the file, or `path:PATTERN` for the first group of a regular expression.

    Raises:
        OptionError: It is none of these.
    """
    argument = text.removeprefix(PATH).removeprefix(":")
    if not argument:
        return lambda path: path
    if _NUMBER.fullmatch(argument.removeprefix("-")) and (number := int(argument)):
        return lambda path: _part(path.split("/"), number)
    try:
        pattern = re.compile(argument)
    except re.error as error:
        raise OptionError(
            f"{text!r} must have a regular expression after 'path:': {error}"
        ) from None
    if not pattern.groups:
        raise OptionError(
            "path must be followed by the number of a part, as in path:2 or path:-1, or by a "
            rf"regular expression with a group, as in 'path:(task\d+)_run': got {text!r}"
        )
    return lambda path: found[1] if (found := pattern.search(path)) else None


def _part(parts: Sequence[str], number: int) -> str | None:
    index = number - 1 if number > 0 else len(parts) + number
    return parts[index] if 0 <= index < len(parts) else None


def names_of_path(path: str) -> Iterator[str]:
    """Yield the names of a file in other files: its path, ends of it, and those of its folders."""
    if not path:
        return
    whole = Path(path)
    bare = whole.with_name(stem_of(whole))
    for each in (whole, bare, whole.parent):
        parts = each.as_posix().split("/")
        yield from ("/".join(parts[at:]) for at in range(len(parts) - 1))
    for each in (whole, bare, whole.parent):
        yield each.name


def task_term(paths: Sequence[str]) -> str | None:
    """Return the term that tells the tasks of files, of which several are tries of one each.

    That is the last part of the paths that recurs and does not number tries; None if none does.
    """
    if len(paths) < 2:
        return None
    split = [path.split("/") for path in paths]
    have_tries = any(_TRY.search(path) for path in paths)
    for number in range(-1, -min(map(len, split)) - 1, -1):
        parts = [each[number] for each in split]
        if number == -1 and (found := _TRY_WORD.search(parts[0])):
            word = found[1]
            for term in (rf"path:([^/]+?)[-_. ]+{word}\d+$", rf"path:{word}\d+[-_. ]+([^/]+)$"):
                if _recur([path_rule(term)(path) for path in paths]):
                    return term
        if any(map(_TRY.search, parts)) or (not have_tries and all(map(str.isdigit, parts))):
            continue
        if _recur(parts):
            return f"{PATH}:{number}"
    return None


def _recur(names: Sequence[str | None]) -> bool:
    """Return whether files have several names, and most of them one that others have, too."""
    counts = Counter(names)
    num_shared = sum(number for number in counts.values() if number > 1)
    return None not in counts and 1 < len(counts) < len(names) and 2 * num_shared >= len(names)
