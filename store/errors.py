"""Every error this project raises on purpose.

    GraphcreditError
    ├── InputError                what the caller gave breaks a rule (also a ValueError)
    │   ├── StoreFormatError      not a store, or one this version cannot read
    │   ├── SchemaError           a file's columns are not those of the schema
    │   ├── StepRefusedError      a logged step breaks a rule; nothing of it was written
    │   ├── OptionError           an option of a command or an estimator is unknown or out of range
    │   ├── NothingToTrainError   no step is left to train on
    │   └── QueryRefusedError     a SQL statement is not allowed, or exceeded its limits
    ├── RecorderError             a recorder cannot start or go on; what it acknowledged is kept
    ├── TrainingError             training cannot go on; its last checkpoint is kept
    ├── EngineError               batches cannot be computed where they were to be
    └── MissingDependencyError    an optional extra is needed; the message says how to install it

A message says what must hold, what was found, where, and what to do.
"""

from collections.abc import Generator
from contextlib import contextmanager


class GraphcreditError(Exception):
    """Base of all errors raised on purpose."""


class InputError(GraphcreditError, ValueError):
    """What the caller gave breaks a rule."""


class StoreFormatError(InputError):
    """A directory is not a store, or not one that this version can read."""


class SchemaError(InputError):
    """The columns of a file are not those of the schema."""


class StepRefusedError(InputError):
    """A logged step breaks a rule; nothing of it was written."""


class OptionError(InputError):
    """An option is unknown or out of its range."""


class NothingToTrainError(InputError):
    """No step is left to train on, for example because no advantage differs from 0."""


class QueryRefusedError(InputError):
    """A SQL statement is not allowed, or exceeded its limits."""


class RecorderError(GraphcreditError):
    """A recorder cannot start or go on; every step it acknowledged is in its spool or a shard."""


class EngineError(GraphcreditError):
    """An engine cannot start or finish; what it was to write is as it was before."""


class TrainingError(GraphcreditError):
    """Training cannot go on; its last checkpoint is kept."""


class MissingDependencyError(GraphcreditError, ImportError):
    """An optional extra is not installed."""


@contextmanager
def interrupts() -> Generator[None]:
    """Let Ctrl-C be a KeyboardInterrupt: DuckDB makes a RuntimeError of it."""
    try:
        yield
    except RuntimeError as error:
        if str(error) == "Query interrupted":
            raise KeyboardInterrupt from error
        raise
