"""Every error this project raises on purpose.

    GraphcreditError
    ├── InputError                what the caller gave breaks a rule (also a ValueError)
    │   ├── StoreFormatError      not a store, or one this version cannot read
    │   ├── PathError             a path cannot be read or written (also an OSError)
    │   ├── SchemaError           a file's columns are not those of the schema
    │   │   ├── DamagedFileError  a file has not the bytes that it was written with
    │   │   └── NewerSchemaError  a file has a schema version that this program does not know
    │   ├── StepRefusedError      a logged step breaks a rule; nothing of it was written
    │   ├── OptionError           an option of a command or an estimator is unknown or out of range
    │   ├── NothingToTrainError   no step is left to train on
    │   ├── ReplacedError         files were replaced while they were being read
    │   └── QueryRefusedError     a SQL statement is not allowed, or exceeded its limits
    ├── NothingToCreditError      no trajectory is complete; credit that was there is kept
    ├── DiskError                 the disk is full, or fails (also an OSError)
    ├── RecorderError             a recorder cannot start or go on; what it acknowledged is kept
    ├── TrainingError             training cannot go on; its last checkpoint is kept
    ├── EngineError               batches cannot be computed where they were to be
    └── MissingDependencyError    an optional extra is needed; the message says how to install it

A message says what must hold, what was found, where, and what to do.
"""

import errno
import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from importlib import metadata

_REMEDIES = {
    errno.ENOSPC: "Free some space",
    errno.EDQUOT: "Free some space, or have the quota raised",
    errno.EFBIG: "Have the limit of file sizes raised: `ulimit -f`",
    errno.EIO: "Look at the disk, or take another one",
    errno.EMFILE: "Have the limit of open files raised: `ulimit -n`",
    errno.ENFILE: "Have the limit of open files raised",
    errno.EACCES: "Have its owner allow it to you, or name another path",
    errno.EPERM: "Have its owner allow it to you, or name another path",
    errno.EROFS: "Name a path on a file system that can be written",
    errno.EISDIR: "Name a file",
    errno.ENOTDIR: "A part of the path is a file: name another path",
    errno.EEXIST: "A part of the path is no directory: name another path",
    errno.ELOOP: "Its links lead to each other: name another path",
    errno.ENAMETOOLONG: "Name a shorter path",
}
"""Error of the system to what the user may do."""

_REASON_LENGTH = 300
"""Characters of what a library says; some list all that they know."""

_PASSING = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE}
)
"""Errors after which the same command may go on; the others are of the path that was named."""


class GraphcreditError(Exception):
    """Base of all errors raised on purpose."""


class InputError(GraphcreditError, ValueError):
    """What the caller gave breaks a rule."""


class StoreFormatError(InputError):
    """A directory is not a store, or not one that this version can read."""


class PathError(InputError, OSError):
    """A path cannot be read or written as it is to be."""


class SchemaError(InputError):
    """The columns of a file are not those of the schema."""


class DamagedFileError(SchemaError):
    """A file has not the bytes that it was written with, or is no Parquet at all."""


class NewerSchemaError(SchemaError):
    """A file has a schema version that this program does not know; it stays as it is."""


class StepRefusedError(InputError):
    """A logged step breaks a rule; nothing of it was written."""


class OptionError(InputError):
    """An option is unknown or out of its range."""


class NothingToTrainError(InputError):
    """No step is left to train on, for example because no advantage differs from 0."""


class ReplacedError(InputError):
    """Files were replaced while they were being read, by a writer that had waited long enough."""


class QueryRefusedError(InputError):
    """A SQL statement is not allowed, or exceeded its limits."""


class NothingToCreditError(GraphcreditError):
    """No trajectory is complete; credit that was there is as it was."""


class DiskError(GraphcreditError, OSError):
    """The disk is full, or fails; the same call may go on when it is mended."""


class RecorderError(GraphcreditError):
    """A recorder cannot start or go on; every step it acknowledged is in its spool or a shard."""


class EngineError(GraphcreditError):
    """An engine cannot start or finish; what it was to write is as it was before."""


class TrainingError(GraphcreditError):
    """Training cannot go on; its last checkpoint is kept."""


class MissingDependencyError(GraphcreditError, ImportError):
    """An optional extra is not installed."""


class CreditWarning(UserWarning):
    """Credit is missing, or says less than its estimator could, for a reason that is in the log."""


@contextmanager
def interrupts() -> Generator[None]:
    """Let Ctrl-C be a KeyboardInterrupt: DuckDB makes a RuntimeError of it."""
    try:
        yield
    except RuntimeError as error:
        if str(error) == "Query interrupted":
            raise KeyboardInterrupt from error
        raise


@contextmanager
def system_errors() -> Generator[None]:
    """Turn an error of the system into one of ours: the path, the reason, and what to do.

    Also a decorator. What the other end of a connection did stays as it is.

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
    # pyarrow puts words of its own, and temporary names, in the place of the reason.
    what = f"{' and '.join(names)}: {os.strerror(number)}" if names else error.strerror
    message = f"{what}. {_REMEDIES.get(number, 'Check the path')}"
    if number in _PASSING:
        return DiskError(f"{message}, then give the same command again")
    return PathError(message)


@contextmanager
def library_errors(rule: str) -> Generator[None]:
    """Turn whatever a library raises of files that a user named into an InputError of one line.

    Loaders of models and tokenizers have no errors of their own for what is wrong in a file: they
    end in an ImportError, a KeyError, a ZeroDivisionError.

    Args:
        rule: What must hold, and of which path; the library's reason follows it.

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
    """Turn the lack of a package into an error that names the extra it is in.

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
            f"this needs the package {package!r}, which is not installed: "
            f"pip install 'graphcredit[{extra}]'"
        ) from error


def _extra_of(package: str) -> str | None:
    """Return the optional extra that a package is in."""
    for line in metadata.requires("graphcredit") or ():
        name, _, condition = line.partition(";")
        found = re.match(r"[\w-]+", name)
        extra = re.search(r"""extra == ["'](\w+)["']""", condition)
        if found and extra and found[0].replace("-", "_").lower() == package.lower():
            return extra[1]
    return None
