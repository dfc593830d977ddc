"""The files of a log: which there are, how each is compressed, and what a record of one is."""

import errno
import gzip
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa

from graphcredit.collector.importers.logs.json_text import parse_json_text, refuse_repeated_keys
from graphcredit.store.errors import InputError

COMPRESSIONS = (".gz", ".zst")

SUFFIXES = (
    *(".jsonl", ".ndjson", ".json", ".traj", ".eval", ".parquet", ".arrow", ".feather", ".ipc"),
    *(".csv", ".tsv", ".npz", ".hdf5", ".h5"),
)
"""Files that a folder is searched for, with or without a suffix of `COMPRESSIONS`."""

ARCHIVES = (".tar", ".tgz", ".tar.gz", ".tar.zst", ".tar.bz2", ".tar.xz", ".zip")
"""Files of other files, which are named and not read."""

_OF_DATASETS = {"dataset_info.json", "state.json"}
"""What `save_to_disk` of datasets writes beside its rows."""

_OF_OPENCODE = {"session", "message", "part"}
"""Folders of its storage: messages and their parts are read with their session."""

LINES = (".jsonl", ".ndjson")
"""Files with a record a line."""

PICKLES = (".pt", ".pth", ".pkl", ".pickle")
"""Files that are never opened: to read a pickle is to run what is in it."""

MAX_RECORD_BYTES = 128 << 20
"""Bytes of a record after decompression, unless the user allows more."""

MOST_CONTAINERS = 2_000_000
"""Lists and objects of a record: each takes some 200 bytes in memory and 3 in a file."""

MOST_VALUES = 16_000_000

_COUNTED_BYTES = 4 << 20
"""A shorter record cannot have too many values."""


NO_FILE = "it must be a file: found a link to nothing, a pipe or a device"


class RowError(InputError):
    """A row of a file cannot be read; the message has the reason alone."""


@dataclass(kw_only=True, slots=True)
class Record:
    """One record of a file. Do not change it."""

    path: Path
    place: str
    """Where in the file: `line 3`, `row 3`, `item 3`, a member of an archive, or empty."""
    value: Any
    """What JSON has there, or a RowError."""
    share: float
    """How much of the file has been read, 0 to 1."""
    places: tuple[str, ...] = ()
    """Where its parts are, if it was put together from several records."""

    @property
    def where(self) -> str:
        """File and place, for messages."""
        return f"{self.path}, {self.place}" if self.place else str(self.path)


def is_mistake(error: Exception) -> bool:
    """Return whether an error is a mistake of this program, and not about what is in a file."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    module = "" if at is None else at.tb_frame.f_globals.get("__name__", "")
    kinds = (AssertionError, AttributeError, LookupError, NameError, TypeError)
    return isinstance(error, kinds) and module.startswith("graphcredit.")


def too_long(limit: int) -> RowError:
    """Return the error for a record of more than some bytes."""
    return RowError(
        f"a record must have at most {limit / 2**20:g} MiB after decompression: this one has more. "
        "--max-record MIB allows more, and takes more memory"
    )


def too_many() -> RowError:
    """Return the error for a record of too many values."""
    return RowError(
        f"a record must have at most {MOST_CONTAINERS:,} lists and objects and {MOST_VALUES:,} "
        "values: this one has more"
    )


def decompressed(raw: IO[bytes], path: Path) -> IO[bytes]:
    """Return the content of an open file, whose suffix says how it is compressed."""
    match path.suffix.lower():
        case ".gz":
            return cast("IO[bytes]", gzip.GzipFile(fileobj=raw))
        case ".zst":
            stream = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
            return io.BufferedReader(stream, 1 << 16)
        case _:
            return raw


@lru_cache(maxsize=1024)
def kind_of(path: Path) -> str:
    """Return the suffix of a file without that of its compression."""
    name = path.name.lower()
    for compression in COMPRESSIONS:
        name = name.removesuffix(compression)
    return Path(name).suffix


def is_archive(path: Path) -> bool:
    """Return whether a file is an archive of others, by its name."""
    return path.name.lower().endswith(ARCHIVES)


def stem_of(path: Path) -> str:
    """Return the name of a file without its suffixes of format and compression."""
    name = path.name
    for suffix in (*COMPRESSIONS, kind_of(path)):
        name = name.removesuffix(suffix)
    return name


def json_file(path: Path) -> Mapping[str, Any]:
    """Return the JSON object of a file; an empty one if it has none or cannot be read."""
    if not path.is_file():  # a pipe would be waited for
        return {}
    try:
        with path.open("rb") as file:
            value: object = parsed(file.read(MAX_RECORD_BYTES))
    except OSError:
        return {}
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def log_files(source: Path) -> tuple[list[Path], list[OSError]]:
    """Return a file, or the files of a folder that may be logs, in the order of their names.

    Also returns why folders and files in it cannot be read.
    """
    if not source.is_dir():
        return [source], []
    unreadable: list[OSError] = []
    files: list[Path] = []
    for folder, folders, names in os.walk(source, onerror=unreadable.append):
        if _OF_OPENCODE.issubset(folders):
            folders[:] = ["session"]
        for name in names:
            path = Path(folder, name)
            is_known = kind_of(path) in SUFFIXES or is_archive(path)
            is_of_dataset = name in _OF_DATASETS and set(names) >= _OF_DATASETS
            if not is_known or is_of_dataset or name.startswith("."):
                continue
            if path.is_file() and not is_archive(path):
                files.append(path)
                continue
            reason = "it must be unpacked first: it is an archive" if path.is_file() else NO_FILE
            unreadable.append(OSError(errno.EINVAL, reason, str(path)))
    return sorted(files), unreadable


def parsed(text: bytes) -> Any:
    """Return the value of a JSON text, or a RowError."""
    if len(text) > _COUNTED_BYTES:
        containers = text.count(b"{") + text.count(b"[")
        if containers > MOST_CONTAINERS or text.count(b",") > MOST_VALUES:
            return too_many()
    try:
        value = parse_json_text(text)
        refuse_repeated_keys(text, value)
        return value
    except ValueError as error:
        return RowError(f"it must be JSON: {error}")


def broken(path: Path, place: str, error: Exception | str) -> Record:
    """Return what stands for the rest of a file that is damaged, or that a RowError refuses."""
    reason = " ".join(str(error).split())[:200]
    if not isinstance(error, RowError):
        error = RowError(f"the file is damaged here: {reason}")
    return Record(path=path, place=place, value=error, share=1.0)
