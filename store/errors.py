"""Every error this project raises on purpose: one tree, from `GraphcreditError`.

A message says what must hold, what was found, where, and what to do.
"""

import errno
import os
import re
from collections.abc import Generator
from contextlib import contextmanager

from graphcredit.store.extras import how_to_install

_REMEDIES = {
    errno.ENOSPC: "Free some space",
    errno.EDQUOT: "Free some space, or ask for a larger quota",
    errno.EFBIG: "Raise the limit of file sizes: `ulimit -f`",
    errno.EIO: "Check the disk, or use another one",
    errno.EMFILE: "Raise the limit of open files: `ulimit -n`",
    errno.ENFILE: "Ask for a higher limit of open files",
    errno.EACCES: "Ask its owner for permission, or name another path",
    errno.EPERM: "Ask its owner for permission, or name another path",
    errno.EROFS: "Name a path on a writable file system",
    errno.EISDIR: "Name a file",
    errno.ENOTDIR: "A part of the path is a file: name another path",
    errno.EEXIST: "A part of the path is not a directory: name another path",
    errno.ELOOP: "Its symbolic links form a cycle: name another path",
    errno.ENAMETOOLONG: "Name a shorter path",
}
"""Remedy for each error of the system."""

_REASON_LENGTH = 300
"""Most characters of a library's message to show; some libraries list everything they know."""

_PASSING = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE}
)
"""Errors after which the same command may succeed; the others are about the path in use."""


class GraphcreditError(Exception):
    """Base of all errors raised on purpose."""


class InputError(GraphcreditError, ValueError):
    """The caller's input breaks a rule."""


class StoreFormatError(InputError):
    """A directory is not a store, or not one that this version can read."""


class PathError(InputError, OSError):
    """A path cannot be read or written."""


class SchemaError(InputError):
    """The columns of a file are not those of the schema."""


class DamagedFileError(SchemaError):
    """A file's bytes are not those that were written, or the file is not Parquet."""


class NewerSchemaError(SchemaError):
    """A file has a schema version that this program does not know; the file stays as it is."""


class StepRefusedError(InputError):
    """A logged step breaks a rule; nothing of it was written."""


class OptionError(InputError):
    """An option is unknown or out of its range."""


class NothingToTrainError(InputError):
    """No step is left to train on, for example because no advantage differs from 0."""


class ReplacedError(InputError):
    """A writer replaced files while they were being read."""


class QueryRefusedError(InputError):
    """A SQL statement is not allowed, or exceeded its limits."""


class NothingToCreditError(GraphcreditError):
    """No trajectory is complete; existing credit stays as it is."""


class DiskError(GraphcreditError, OSError):
    """The disk is full, or fails; repeat the call when the cause is removed."""


class UnplayableError(GraphcreditError):
    """A task's environment cannot be opened, or died; other tasks can be played."""


class RecorderError(GraphcreditError):
    """A recorder cannot start or continue; all acknowledged steps are in its spool or a shard."""


class EngineError(GraphcreditError):
    """An engine cannot start or finish; the files that it was to write stay as they were."""


class TrainingError(GraphcreditError):
    """Training cannot continue; its last checkpoint is kept."""


class MissingDependencyError(GraphcreditError, ImportError):
    """An optional extra is not installed."""


class CreditWarning(UserWarning):
    """Credit is missing or less informative than it could be, because of data in the log."""


class ExtensionWarning(UserWarning):
    """An installed package offers a row of a table that cannot be used."""


def unreadable(what: str, error: Exception) -> SchemaError:
    """Return the error for a file that is damaged, or that the system does not let us read."""
    if isinstance(error, OSError) and error.errno is not None:
        return SchemaError(f"{what}: {error}")
    return DamagedFileError(
        f"{what}: {error}. `graphcredit check STORE` says how to take damaged files out."
    )


@contextmanager
def interrupts() -> Generator[None]:
    """Raise KeyboardInterrupt at Ctrl-C, also inside DuckDB, which raises a RuntimeError."""
    try:
        yield
    except RuntimeError as error:
        if str(error) == "Query interrupted":
            raise KeyboardInterrupt from error
        raise


@contextmanager
def system_errors() -> Generator[None]:
    """Turn an OSError into one of our errors, which names the path, the reason and the remedy.

    Also a decorator. Errors of connections and child processes pass through.

    Raises:
        PathError: A path cannot be read or written.
        DiskError: The disk is full, or fails.
    """
    try:
        yield
    except (GraphcreditError, ConnectionError, ChildProcessError, TimeoutError):
        raise
    except OSError as error:
        if error.errno is None:
            raise
        raise _of_system(error, error.errno) from error


def _of_system(error: OSError, number: int) -> GraphcreditError:
    names = [os.fsdecode(name) for name in (error.filename, error.filename2) if name is not None]
    # pyarrow puts its own words and temporary names where the system's reason belongs.
    what = f"{' and '.join(names)}: {os.strerror(number)}" if names else error.strerror
    message = f"{what}. {_REMEDIES.get(number, 'Check the path')}"
    if number in _PASSING:
        return DiskError(f"{message}, then give the same command again")
    return PathError(message)


@contextmanager
def library_errors(rule: str) -> Generator[None]:
    """Turn any error of a library about a user's file into a one-line InputError.

    Loaders of models and tokenizers have no exception for a broken file: they end in an
    ImportError, a KeyError or a ZeroDivisionError.

    Args:
        rule: The rule that the file must keep, with its path; the library's reason follows it.

    Raises:
        InputError: The library raised something.
    """
    try:
        yield
    except (GraphcreditError, MemoryError):
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:_REASON_LENGTH]
        if not isinstance(error, OSError | ValueError):
            reason = f"{type(error).__name__}: {reason}"
        raise InputError(f"{rule}: {reason}") from error


@contextmanager
def missing_extras() -> Generator[None]:
    """Turn a missing package into an error that names the optional extra with that package.

    Raises:
        MissingDependencyError: A package of an optional extra is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        extra = _extra_of(package)
        if extra is None:
            raise
        raise MissingDependencyError(
            f"this needs the package {package!r}, which is not installed: {how_to_install(extra)}"
        ) from error


def _extra_of(package: str) -> str | None:
    """Return the optional extra of ours that installs a package, or None."""
    from importlib import metadata

    for line in metadata.requires("graphcredit") or ():
        name, _, condition = line.partition(";")
        package_name = re.match(r"[\w-]+", name)
        extra = re.search(r"""extra == ["'](\w+)["']""", condition)
        if package_name and extra and package_name[0].replace("-", "_").lower() == package.lower():
            return extra[1]
    return None
