"""Rows that installed packages add to the tables of estimators, merges, formats and environments.

A package names an entry point in the group of a table: a row of it, under the row's name. The
tables ask for them when they are first asked for a row.
"""

import functools
import multiprocessing
import warnings
from collections.abc import Collection, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from graphcredit.store.errors import ExtensionWarning

Row = TypeVar("Row")

_LOADED: dict[str, dict[str, Any]] = {}


def installed(group: str, kind: type[Row], taken: Collection[str]) -> Mapping[str, Row]:
    """Return the rows that installed packages add to a table, by name; they are loaded once.

    Args:
        group: Of the entry points, for example `graphcredit.estimators`.
        kind: Class of a row.
        taken: Names of our own rows.

    Warns:
        ExtensionWarning: A row is left out: it cannot be loaded, is of another class, or its name
            is taken.
    """
    if group not in _LOADED:
        rows = _LOADED[group] = {}
        for point in sorted(_all_points().select(group=group), key=lambda point: point.value):
            try:
                rows[point.name] = _load(point, kind, {*taken, *rows})
            except Exception as error:  # whatever a foreign package raises
                _leave_out(point, group, error)
    return _LOADED[group]


@functools.cache
def _all_points() -> Any:
    """Return those of all groups: the metadata of every installed package is read for one, too."""
    return entry_points()


def _load(point: EntryPoint, kind: type[Row], taken: Collection[str]) -> Row:
    if point.name in taken:
        raise ValueError(f"the name {point.name!r} is taken")
    row = point.load()
    if not isinstance(row, kind):
        raise TypeError(f"it must be of class {kind.__name__}: found {row!r}")
    if (name := getattr(row, "name", point.name)) != point.name:
        raise ValueError(f"the entry point must have the name of its row: {name!r}")
    return row


def _leave_out(point: EntryPoint, group: str, error: Exception) -> None:
    # Workers load the same packages as the process that has said so.
    if multiprocessing.parent_process() is None:
        owner = point.dist.name if point.dist else "an installed package"
        reason = f"{type(error).__name__}: {error}"
        warnings.warn(
            f"{point.name} of {owner} is not used ({group}, {point.value}): {reason}",
            ExtensionWarning,
            stacklevel=3,
        )
