"""The columns of the store that rows of steps have: of any log some, of an export all."""

from collections.abc import Sequence
from dataclasses import fields
from functools import lru_cache
from itertools import pairwise
from typing import Any

import pyarrow as pa

from graphcredit.collector.importers.formats.step_order import text_of_value
from graphcredit.collector.importers.formats.step_shapes import Row
from graphcredit.collector.importers.messages.rollout import LoggedSampling
from graphcredit.collector.importers.messages.values import RecordError, first_of, parse_json
from graphcredit.collector.recording.validation import check_value
from graphcredit.store.errors import StepRefusedError
from graphcredit.store.schema import (
    CREDIT_COLUMNS,
    PARTITION_COLUMNS,
    STEP_COLUMNS,
    Column,
    split_estimator_column,
)

_IDS = ("task_id", "trajectory_id", "step_index")
_MESSAGES = (
    *("state", "next_state", "observation", "thought", "action", "admissible_actions"),
    *("is_action_valid", "reward", "score", "terminated", "truncated", "success"),
    *("images", "extra", *(field.name for field in fields(LoggedSampling))),
)
"""Columns that are made of the messages of a log, whatever its rows call them."""

_OF_STORE = tuple(column for column in STEP_COLUMNS if column.name not in _IDS)
_OF_LOG = tuple(column for column in _OF_STORE if column.name not in _MESSAGES)
_NEEDED = {c.name for c in (*PARTITION_COLUMNS, *STEP_COLUMNS) if not c.nullable}
_KNOWN = {c.name for c in (*PARTITION_COLUMNS, *STEP_COLUMNS, *CREDIT_COLUMNS)}

FIELDS = frozenset(name for column in _OF_LOG for name in (column.name, *column.in_logs))
"""What rows of a log may call the columns that are taken as they are."""


def is_of_store(row: Row) -> bool:
    """Return whether a row has all that a store says of a step, and nothing else but credit."""
    return row.keys() >= _NEEDED and _are_known(tuple(row))


@lru_cache(maxsize=64)
def _are_known(names: tuple[str, ...]) -> bool:
    return all(name in _KNOWN or split_estimator_column(name) is not None for name in names)


def columns_of_store(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Return the columns of a trajectory of an export.

    Raises:
        RecordError: A value breaks the rule of its column.
    """
    try:
        return {column.name: _values(column, rows) for column in _OF_STORE}
    except StepRefusedError as error:
        raise RecordError(str(error)) from None


def columns_of_log(rows: Sequence[Row]) -> tuple[dict[str, list[Any]], dict[str, int]]:
    """Return the columns that the rows of a trajectory have under a name of the store's.

    Another program may mean something else by such a name.

    Returns:
        The columns, and those that break a rule of theirs: reason to number.
    """
    columns: dict[str, list[Any]] = {}
    left_out: dict[str, int] = {}
    for column in _OF_LOG:
        if not any(first_of(row, (column.name, *column.in_logs)) is not None for row in rows):
            continue
        try:
            columns[column.name] = _values(column, rows)
        except StepRefusedError as error:
            rule = str(error).partition(": got")[0]
            left_out[f"`{column.name}` of a rollout, as {rule}"] = 1
    return columns, left_out


def _values(column: Column, rows: Sequence[Row]) -> list[Any]:
    values = [_value(column, row) for row in rows]
    if pa.types.is_timestamp(column.type):
        times = [time for time in values if time is not None]
        if len(times) < len(values) or any(after < before for before, after in pairwise(times)):
            raise StepRefusedError(f"{column.name} must be in all rows, and must not decrease")
    return values


def _value(column: Column, row: Row) -> Any:
    value = first_of(row, (column.name, *column.in_logs))
    if value is None:
        return None
    if column.type == pa.string() and column.name != "extra":
        value = text_of_value(value)
    elif pa.types.is_list(column.type) and isinstance(value, str):
        value = parse_json(value)
    return check_value(column.name, value)
