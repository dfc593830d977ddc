"""Find every file below a store, and those with more than one name.

The walk stays in the store's folders: a foreign folder is named, not entered. The store's own files
come first, then the targets of links. A link is followed where readers follow it: in the place of a
folder or shard of an iteration, of a run or of a whole table. Any other link is only named, and no
folder is entered twice.
"""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from graphcredit.store.layout import ITERATION_TABLES, unreadable_folder

_OF_ITERATIONS = f"({'|'.join(ITERATION_TABLES)})"
_LINKED_FOLDERS = re.compile(
    rf"{_OF_ITERATIONS}(/run_id=[^/]*(/iteration=[^/]*)?)?|history(/run_id=[^/]*)?|er_graph",
    re.DOTALL,
)
"""Folders that may be links, for readers and the walk follow them."""
_FOLDERS = re.compile(
    rf"({_OF_ITERATIONS}|history|er_graph|embeddings|images|spool|quarantine)(/.*)?", re.DOTALL
)
_SHARDS = re.compile(
    rf"{_OF_ITERATIONS}/run_id=[^/]*/iteration=[^/]*/[^/]*\.parquet"
    r"|history/run_id=[^/]*/[^/]*\.parquet|er_graph/[^/]*\.parquet|embeddings/[^/]*/[^/]*\.parquet",
    re.DOTALL,
)

_Identity = tuple[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Oddity:
    """A link, a second name, a foreign folder, or what is no file in the place of a file."""

    rule: str
    """Name of the rule of the checks that it breaks."""
    name: str
    """Relative to the root."""
    description: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    """All files below a store's root. `walk_tree` returns one."""

    root: Path
    files: list[Path] = field(default_factory=list[Path])
    """Paths of regular files; one file may be there under several names."""
    links: list[str] = field(default_factory=list[str])
    """Symbolic links, relative to the root."""
    oddities: list[Oddity] = field(default_factory=list[Oddity])
    shared: dict[str, str] = field(default_factory=dict[str, str])
    """File or folder to its other name, or to the target of its link; relative to the root."""

    def other_name(self, relative: str) -> str | None:
        """Return another name of a file, or a link to it; None if there is no other."""
        path = PurePosixPath(relative)
        names = (str(folder) for folder in (path, *path.parents))
        return next((self.shared[name] for name in names if name in self.shared), None)

    def real_files(self) -> Iterator[str]:
        """Yield the files that are no links and behind none, relative to the root."""
        links = set(self.links)
        for file in self.files:
            path = PurePosixPath(file.relative_to(self.root).as_posix())
            if links.isdisjoint(map(str, (path, *path.parents))):
                yield str(path)


def walk_tree(root: Path) -> Tree:
    """Return every file of a store, by its root.

    Raises:
        StoreFormatError: A folder cannot be listed.
    """
    return _Walk(Tree(root=root)).everything()


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
            if is_behind_link and not (
                _LINKED_FOLDERS.fullmatch(relative) or _SHARDS.fullmatch(relative)
            ):
                continue
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
                elif _FOLDERS.fullmatch(relative):
                    self._enter(relative, is_behind_link=is_behind_link)
                else:
                    self._report("unknown_file", relative, "a folder")
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
        self._tree.links.append(link)
        is_read = _LINKED_FOLDERS.fullmatch(link) or _SHARDS.fullmatch(link)
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
        if not is_read:
            return
        if stat.S_ISREG(status.st_mode):
            self._tree.files.append(path)
        elif not stat.S_ISDIR(status.st_mode):
            self._report("accessible", link, "a link to a pipe, a device or a socket")
        elif not is_alias:
            self._enter(link, is_behind_link=True)

    def _report(self, rule: str, name: str, description: str) -> None:
        self._tree.oddities.append(Oddity(rule=rule, name=name, description=description))


def _list(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise unreadable_folder(error) from error


def _identity(status: os.stat_result) -> _Identity:
    return status.st_dev, status.st_ino
