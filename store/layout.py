"""The layout of a store: its folders and files, and the rules for names in its paths."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias, TypeVar

from graphcredit.store.errors import InputError, StoreFormatError, system_errors
from graphcredit.store.files.atomic import atomic_path
from graphcredit.store.files.parse import parse_json
from graphcredit.store.files.regular import read_regular

FORMAT = "graphcredit-store"
FORMAT_VERSION = 1
MARKER_NAME = "store.json"
MARKER = json.dumps({"format": FORMAT, "version": FORMAT_VERSION}) + "\n"
"""What a store's `store.json` holds."""

ITERATION_TABLES = ("steps", "states", "credit", "graph", "training")
"""Folders with a folder for each run and iteration. A copy follows this order, so that a reader
never finds credit without its steps."""

IMPORTS = "imports"
"""Folder of what a store remembers of its imports; it can be deleted."""

LOGGED_STATE = "logged"
"""What names the states that the step shards have."""

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
"""Regular expression of a name in a path of the store."""
_NAME = re.compile(NAME)


def is_name(value: object) -> bool:
    """Return whether a value may be a name in a path of the store."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def refuse_undecodable(path: Path) -> Path:
    """Return the path if it is UTF-8, which DuckDB and Arrow require.

    Raises:
        StoreFormatError: It is not.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise StoreFormatError(
            f"paths must be UTF-8: found {os.fsencode(path)!r}. Rename it, or reach it by another "
            "path"
        ) from None
    return path


def is_iteration(value: str) -> bool:
    """Return whether a text is an iteration number, as in a folder `iteration=<number>`."""
    return value.isascii() and value.isdigit() and len(value) <= 10 and int(value) < 1 << 31


def check_name(kind: str, value: object) -> str:
    """Return a name that may become part of a path.

    Raises:
        InputError: It is not a string of 1 to 128 letters, digits, dots, underscores and hyphens
            that starts with a letter or a digit.
    """
    if not isinstance(value, str) or _NAME.fullmatch(value) is None:
        raise InputError(
            f"{kind} becomes part of a path, so it must match {_NAME.pattern}: got {value!r}. "
            "Use letters, digits, '.', '_' and '-', and start with a letter or a digit."
        )
    return value


def states_name(rule: str) -> str:
    """Return the name of the states by a rule, as a path has it: without what its parts name.

    `effects:book,cancel+last-tool` makes `effects.last-tool`.

    Raises:
        InputError: It is no name.
    """
    parts = [part.partition(":")[0] for part in rule.split("+")]
    return check_name("the name of states", ".".join(parts))


def stored_states(store: "Store") -> list[str]:
    """Return the names of the states that every shard of a store has beside the logged ones."""
    names: set[str] | None = None
    for shard in store.shards():
        ends = shard.with_state("").states_path.name
        files = shard.states_path.parent.glob(f"*{ends}")
        here = {path.name.removesuffix(ends) for path in files}
        names = here if names is None else names & here
        if not names:
            return []
    return sorted(names or ())


@dataclass(frozen=True, kw_only=True, slots=True)
class Shard:
    """A step shard, and the path of its credit shard."""

    run_id: str
    iteration: int
    path: Path
    """The step shard."""
    credit_path: Path
    """The credit shard with the same rows; it may not exist yet."""
    state: str = LOGGED_STATE
    """Which states credit reads: those of the steps, or of the file at `states_path`."""

    @property
    def states_path(self) -> Path:
        """The file with its states by the rule `state`, row for row."""
        folder = self.root / "states" / self.path.relative_to(self.root / "steps").parent
        return folder / f"{self.state}.{self.path.name}"

    def with_state(self, state: str) -> "Shard":
        """Return the shard with other states."""
        return replace(self, state=state)

    @property
    def root(self) -> Path:
        """The root of its store."""
        return self.path.parents[3]


@dataclass(frozen=True, slots=True)
class Store:
    """The paths of one store. `open_store` and `create_store` return one."""

    root: Path

    @property
    def spool_dir(self) -> Path:
        """The spools of workers: steps that are not in a shard yet."""
        return self.root / "spool"

    def spools(self) -> list[Path]:
        """Return the spools that are being written or left over."""
        return sorted(self.spool_dir.glob("*.jsonl"))

    @property
    def quarantine_dir(self) -> Path:
        """What recovery could not read, and shards as they were before an import replaced rows."""
        return self.root / "quarantine"

    @property
    def state_rules_path(self) -> Path:
        """The user's rules of which texts are one state; it need not be there."""
        return self.root / "states.toml"

    def steps_dir(self, run_id: str, iteration: int) -> Path:
        """Return the folder for new step shards of an iteration."""
        return self._partition("steps", run_id, iteration)

    def credit_dir(self, run_id: str, iteration: int) -> Path:
        """Return the folder for new credit shards of an iteration."""
        return self._partition("credit", run_id, iteration)

    def graph_dir(self, run_id: str, iteration: int) -> Path:
        """Return the folder for the graph tables of an iteration."""
        return self._partition("graph", run_id, iteration)

    def history_path(self, run_id: str) -> Path:
        """Return the file with the counts of a run's states."""
        check_name("run_id", run_id)
        return self.root / "history" / f"run_id={run_id}" / "state_scores.parquet"

    def training_path(self, run_id: str, iteration: int, name: str) -> Path:
        """Return the file for the metrics of a training."""
        check_name("the name of a training", name)
        return self._partition("training", run_id, iteration) / f"{name}.parquet"

    def runs(self) -> list[str]:
        """Return the runs that have step shards, sorted."""
        return sorted(name for name, _ in _partitions(self.root / "steps", "run_id"))

    def iterations(self, run_id: str) -> list[int]:
        """Return the iterations of a run that have a step directory, sorted."""
        run_dir = self.root / "steps" / f"run_id={check_name('run_id', run_id)}"
        return sorted({int(value) for value, _ in _partitions(run_dir, "iteration")})

    def shards(self, run_id: str | None = None, iteration: int | None = None) -> list[Shard]:
        """Return the finished step shards, sorted by run, iteration, file name and path."""
        shards = [
            Shard(
                run_id=run,
                iteration=int(value),
                path=refuse_undecodable(path),
                credit_path=self.root / "credit" / path.relative_to(self.root / "steps"),
            )
            for run, run_dir in _partitions(self.root / "steps", "run_id")
            if run_id is None or run == run_id
            for value, directory in _partitions(run_dir, "iteration")
            if iteration is None or int(value) == iteration
            for path in _entries(directory)
            if path.suffix == ".parquet"
        ]
        return sorted(shards, key=lambda s: (s.run_id, s.iteration, s.path.name, s.path))

    def one_iteration(
        self, run_id: str | None = None, iteration: int | None = None
    ) -> tuple[str, int]:
        """Return a run and an iteration; those that are not given must be the only ones.

        Raises:
            InputError: There are several to choose from, or none.
        """
        run = _only("run", "run_id", self.runs()) if run_id is None else run_id
        if iteration is None:
            iteration = _only(f"iteration of run {run}", "iteration", self.iterations(run))
        return run, iteration

    def _partition(self, table: str, run_id: str, iteration: int) -> Path:
        check_name("run_id", run_id)
        if iteration < 0:
            raise InputError(f"iteration must be 0 or more: got {iteration}")
        return self.root / table / f"run_id={run_id}" / f"iteration={iteration:06d}"


AnyStore: TypeAlias = Store | str | Path
"""A store, or its path."""

_Value = TypeVar("_Value", str, int)


def _only(kind: str, argument: str, values: list[_Value]) -> _Value:
    if len(values) != 1:
        listed = ", ".join(map(str, values)) or "none"
        raise InputError(f"{argument} must say which {kind} is meant: there are {listed}")
    return values[0]


@system_errors()
def create_store(root: str | Path) -> Store:
    """Open a store; create it if there is none.

    Several processes may call this with the same path at the same time.

    Raises:
        StoreFormatError: `root` holds other files, or is a store that this version cannot read.
        PathError: `root` cannot be created or read.
        DiskError: The disk is full, or fails.
    """
    root = Path(root)
    refuse_undecodable(root.absolute())
    if not (root / MARKER_NAME).exists():
        _refuse_foreign_directory(root)
        root.mkdir(parents=True, exist_ok=True)
        with atomic_path(root / MARKER_NAME) as temporary:
            temporary.write_text(MARKER, encoding="utf-8")
    return open_store(root)


@system_errors()
def open_store(root: AnyStore) -> Store:
    """Open an existing store; one that is open already is returned as it is.

    Raises:
        StoreFormatError: `root` is not a store, its version is newer than this program's, or its
            path is not UTF-8.
        PathError: `root` cannot be read.
    """
    if isinstance(root, Store):
        return root
    root = Path(root)
    refuse_undecodable(root.absolute())
    try:
        marker = read_regular(root / MARKER_NAME)
    except (FileNotFoundError, NotADirectoryError):
        raise no_store(root) from None
    check_marker(root / MARKER_NAME, marker)
    return Store(root)


def no_store(root: Path | str) -> StoreFormatError:
    """Return the error for a path that is no store."""
    return StoreFormatError(
        f"{root} is not a store: it has no {MARKER_NAME}. "
        "`graphcredit import`, `graphcredit collect` and StepRecorder make one; check the path."
    )


def check_marker(path: Path | str, content: bytes) -> None:
    """Check the file by which a store is known.

    Raises:
        StoreFormatError: It is not that of a store, or of a newer one than this program reads.
    """
    try:
        marker = parse_json(content.decode("utf-8"))
    except ValueError as error:
        raise StoreFormatError(f"{path} must be JSON: {error}") from error
    if not isinstance(marker, dict):
        raise StoreFormatError(f"{path} must be a JSON object: found {type(marker).__name__}")
    version = marker.get("version")
    if marker.get("format") != FORMAT or type(version) is not int or version < 1:
        raise StoreFormatError(
            f"{path} must hold "
            f'{{"format": "{FORMAT}", "version": {FORMAT_VERSION}}}: found {json.dumps(marker)}'
        )
    if version > FORMAT_VERSION:
        raise StoreFormatError(
            f"{path} has store version {version}, this program reads up to {FORMAT_VERSION}: "
            "install a newer graphcredit"
        )


def _refuse_foreign_directory(root: Path) -> None:
    if root.exists() and not root.is_dir():
        raise StoreFormatError(f"a store is a directory: {root} is a file")
    if root.is_dir():
        foreign = sorted(p.name for p in root.iterdir() if not p.name.startswith("store.json"))
        if foreign and not (root / "store.json").exists():
            raise StoreFormatError(
                f"{root} has no store.json but holds {foreign[0]!r}: "
                "name a new or empty directory, or an existing store"
            )


def refuse_foreign_folders(store: Store) -> None:
    """Raise StoreFormatError for a folder `run_id=…` or `iteration=…` whose value is not valid.

    The views would read its files. Folders of other names are left to the checks.
    """
    for table in ITERATION_TABLES:
        for _, run_dir in _partitions(store.root / table, "run_id"):
            for _ in _partitions(run_dir, "iteration"):
                pass
    for _ in _partitions(store.root / "history", "run_id"):
        pass


def unreadable_folder(error: OSError) -> StoreFormatError:
    """Return the error for a folder that cannot be listed, which must not pass for empty."""
    return StoreFormatError(
        f"every folder of a store must be readable: {error.filename}: {error.strerror}. Ask its "
        "owner for permission"
    )


def _entries(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError as error:
        raise unreadable_folder(error) from error


def _partitions(directory: Path, key: str) -> Iterator[tuple[str, Path]]:
    """Yield (value, path) of the `key=value` folders; other names are left to the checks.

    Raises:
        StoreFormatError: A folder with that key has files but an invalid value; or one folder has
            two names, one of them a link.
    """
    if not directory.is_dir():
        return
    is_right = is_iteration if key == "iteration" else is_name
    folders: dict[tuple[int, int], Path] = {}
    for path in sorted(_entries(directory)):
        name, separator, value = path.name.partition("=")
        if name != key or not separator or not path.is_dir():
            continue
        if is_right(value):
            status = path.stat()
            first = folders.setdefault((status.st_dev, status.st_ino), path)
            if first != path:
                raise StoreFormatError(
                    f"a folder of a store must have one name: {path} and {first} are the same "
                    "folder, so its steps would count twice. Remove the link"
                )
            yield value, path
        elif any(path.rglob("*.parquet")):
            must = "a whole number below 2³¹" if key == "iteration" else _NAME.pattern
            raise StoreFormatError(
                f"the folders of a store must be called {key}=VALUE, where VALUE is {must}: found "
                f"{path}. Rename it or move it away"
            )
