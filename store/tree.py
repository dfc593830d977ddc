"""Find every file below a store, and every link.

The walk stays in the store's folders: a foreign folder is named, not entered. A link out of the
store is followed where readers follow it: in the place of a folder or shard of an iteration, of a
run or of a whole table. Any other link is only named.
"""

import os
import re
import stat
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
    rf"({_OF_ITERATIONS}|history|er_graph|embeddings|images|imports|spool|quarantine)(/.*)?",
    re.DOTALL,
)
_SHARDS = re.compile(
    rf"{_OF_ITERATIONS}/run_id=[^/]*/iteration=[^/]*/[^/]*\.parquet"
    r"|history/run_id=[^/]*/[^/]*\.parquet|er_graph/[^/]*\.parquet|embeddings/[^/]*/[^/]*\.parquet",
    re.DOTALL,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Oddity:
    """A link, a foreign folder, or what is no file in the place of a file."""

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
    """Paths of regular files, and of links to such."""
    links: dict[str, str] = field(default_factory=dict[str, str])
    """Symbolic link, relative to the root, to its target."""
    oddities: list[Oddity] = field(default_factory=list[Oddity])
    targets: dict[str, str] = field(default_factory=dict[str, str])
    """File or folder of the store, relative to the root, to a link to it."""

    def other_name(self, relative: str) -> str | None:
        """Return the link that a file is or is behind, or one to it; None if there is none."""
        path = PurePosixPath(relative)
        names = [str(each) for each in (path, *path.parents)]
        return next(
            (other[n] for n in names for other in (self.links, self.targets) if n in other), None
        )

    def report(self, rule: str, name: str, description: str) -> None:
        """Add an oddity."""
        self.oddities.append(Oddity(rule=rule, name=name, description=description))


def walk_tree(root: Path) -> Tree:
    """Return every file of a store, by its root.

    Raises:
        StoreFormatError: A folder cannot be listed.
    """
    tree = Tree(root=root)
    _enter(tree, ".", is_behind_link=False)
    return tree


def _enter(tree: Tree, folder: str, *, is_behind_link: bool) -> None:
    """Walk a folder; behind a link, only the entries that readers read."""
    for entry in _list(tree.root / folder):
        relative = entry.name if folder == "." else f"{folder}/{entry.name}"
        is_shard = _SHARDS.fullmatch(relative) is not None
        is_read = is_shard or _LINKED_FOLDERS.fullmatch(relative) is not None
        if is_behind_link and not is_read:
            continue
        if entry.is_symlink():
            _follow(tree, relative, is_read=is_read)
        elif entry.is_file(follow_symlinks=False):
            tree.files.append(tree.root / relative)
        elif not entry.is_dir(follow_symlinks=False):
            rule = "accessible" if is_shard else "unknown_file"
            tree.report(rule, relative, "a pipe, a device or a socket")
        elif is_shard or not _FOLDERS.fullmatch(relative):
            tree.report("accessible" if is_shard else "unknown_file", relative, "a folder")
        else:
            _enter(tree, relative, is_behind_link=is_behind_link)


def _follow(tree: Tree, link: str, *, is_read: bool) -> None:
    path = tree.root / link
    target = tree.links[link] = os.path.realpath(path)
    try:
        mode = path.stat().st_mode
    except OSError as error:
        tree.report("accessible" if is_read else "link", link, f"a link: {error.strerror}")
        return
    root = os.path.realpath(tree.root)
    is_inside = Path(target).is_relative_to(root)
    if is_inside:
        tree.targets[Path(target).relative_to(root).as_posix()] = link
    tree.report("one_name" if is_inside and is_read else "link", link, f"a link to {target}")
    if not is_read:
        return
    if stat.S_ISREG(mode):
        tree.files.append(path)
    elif not stat.S_ISDIR(mode):
        tree.report("accessible", link, "a link to a pipe, a device or a socket")
    elif not is_inside:
        _enter(tree, link, is_behind_link=True)


def _list(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise unreadable_folder(error) from error
