"""Find every file below a store, and those with more than one name.

The store's own files come first, then the targets of links. A link is followed where readers follow
it: in the place of a folder or shard of the layout. Any other link is only reported.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from graphcredit.store.checks.file_rules import FILE_RULES
from graphcredit.store.checks.violations import Violation
from graphcredit.store.layout import ITERATION_TABLES, Store, unreadable_folder

_OF_ITERATIONS = f"({'|'.join(ITERATION_TABLES)})"
_FOLDERS = re.compile(
    rf"{_OF_ITERATIONS}(/run_id=[^/]*(/iteration=[^/]*)?)?|history(/run_id=[^/]*)?"
    r"|er_graph|embeddings(/[^/]*)?|images(/.*)?|spool|quarantine",
    re.DOTALL,
)
_SHARDS = re.compile(
    rf"{_OF_ITERATIONS}/run_id=[^/]*/iteration=[^/]*/[^/]*\.parquet"
    r"|history/run_id=[^/]*/[^/]*\.parquet|er_graph/[^/]*\.parquet|embeddings/[^/]*/[^/]*\.parquet",
    re.DOTALL,
)

_Identity = tuple[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    """All files below a store's root. `walk_store` returns one."""

    root: Path
    files: list[Path] = field(default_factory=list[Path])
    """Paths of regular files; one file may be there under several names."""
    violations: list[Violation] = field(default_factory=list[Violation])
    """Links, and anything in a shard's place that is not a file."""
    shared: dict[str, str] = field(default_factory=dict[str, str])
    """File or folder to its other name, or to the target of its link; relative to the root."""

    def other_name(self, relative: str) -> str | None:
        """Return another name of a file, or a link to it; None if there is no other."""
        path = PurePosixPath(relative)
        names = (str(folder) for folder in (path, *path.parents))
        return next((self.shared[name] for name in names if name in self.shared), None)


def walk_store(store: Store) -> Tree:
    """Return every file of a store.

    Raises:
        StoreFormatError: A folder cannot be listed.
    """
    return _Walk(Tree(root=store.root)).everything()


class _Walk:
    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._names: dict[_Identity, str] = {}
        """The first name of each file and folder."""
        self._links: list[str] = []

    def everything(self) -> Tree:
        self._names[_identity(os.stat(self._tree.root))] = "."
        self._enter(".", is_behind_link=False)
        while self._links:
            links, self._links = sorted(self._links), []
            for link in links:
                self._follow(link)
        return self._tree

    def _enter(self, folder: str, *, is_behind_link: bool) -> None:
        """Walk a folder; behind a link, only the entries that readers read."""
        for entry in _list(self._tree.root / folder):
            relative = entry.name if folder == "." else f"{folder}/{entry.name}"
            if entry.is_symlink():
                self._links.append(relative)
                continue
            try:
                self._name(relative, entry.stat(follow_symlinks=False))
            except FileNotFoundError:
                continue
            if entry.is_dir(follow_symlinks=False):
                if _SHARDS.fullmatch(relative):
                    self._report("accessible", relative, "a folder")
                elif not is_behind_link or _FOLDERS.fullmatch(relative):
                    self._enter(relative, is_behind_link=is_behind_link)
            elif entry.is_file(follow_symlinks=False):
                self._tree.files.append(self._tree.root / relative)
            else:
                rule = "accessible" if _SHARDS.fullmatch(relative) else "unknown_file"
                self._report(rule, relative, "a pipe, a device or a socket")

    def _name(self, relative: str, status: os.stat_result) -> None:
        first = self._names.setdefault(_identity(status), relative)
        if first == relative or self._tree.other_name(relative) is not None:
            return
        shards = [name for name in (first, relative) if _SHARDS.fullmatch(name)]
        if shards == [relative]:
            first, relative = relative, first
        rule = "one_name" if len(shards) == 2 else "link"
        self._report(rule, relative, f"the file that is also called {first}")
        self._tree.shared.update({relative: first, first: relative})

    def _follow(self, link: str) -> None:
        path = self._tree.root / link
        is_read = _FOLDERS.fullmatch(link) or _SHARDS.fullmatch(link)
        try:
            status = path.stat()
        except OSError as error:
            self._report("accessible" if is_read else "link", link, f"a link: {error.strerror}")
            return
        first = self._names.setdefault(_identity(status), link)
        is_alias = first != link
        target = first if is_alias else os.path.realpath(path)
        self._tree.shared[link] = target
        if is_alias:
            self._tree.shared[first] = link
        self._report("one_name" if is_alias and is_read else "link", link, f"a link to {target}")
        if is_read and path.is_dir():
            self._enter(link, is_behind_link=True)
        elif is_read:
            self._tree.files.append(path)

    def _report(self, rule: str, relative: str, found: str) -> None:
        violation = Violation(rule=FILE_RULES[rule], file=relative, found=found)
        self._tree.violations.append(violation)


def _list(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise unreadable_folder(error) from error


def _identity(status: os.stat_result) -> _Identity:
    return status.st_dev, status.st_ino
