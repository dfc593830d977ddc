"""Answers about the store, kept while the files they were made of stay the same."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import streamlit as st

from graphcredit.store.layout import Store, open_store
from graphcredit.viewer.config import STORE_VARIABLE

_T = TypeVar("_T")
Stamp = tuple[tuple[str, int, int], ...]
"""Name, size and time of files."""


def viewed_store() -> Store:
    """Return the store that this viewer shows."""
    return open_store(os.environ[STORE_VARIABLE])


def ask(query: Callable[..., _T], *, run_id: str, iteration: int | None, **arguments: Any) -> _T:
    """Return what a query answers about an iteration or a run.

    Args:
        query: A function of `viewer/queries`: `query(store, run_id=…, iteration=…, …)`.
        run_id: The run.
        iteration: The iteration; None for all, if the query allows it.
        arguments: More arguments of the query, all of them hashable.

    Raises:
        GraphcreditError: What the query raises; it is asked again the next time.
    """
    store = viewed_store()
    name = f"{query.__module__}.{query.__qualname__}"
    asked = (str(store.root), run_id, iteration, tuple(sorted(arguments.items())))
    return _answer(query, name, asked, stamp(store, run_id, iteration))


def stamp(store: Store, run_id: str, iteration: int | None) -> Stamp:
    """Return name, size and time of each file of an iteration, or of all; changes change it."""
    return tuple(sorted(_stats(store, run_id, iteration)))


@st.cache_data(max_entries=500, max_size="512MB", show_spinner="Reading the store …")
def _answer(_query: Callable[..., Any], name: str, asked: tuple[Any, ...], files: Stamp) -> Any:
    _, run_id, iteration, arguments = asked
    return _query(viewed_store(), run_id=run_id, iteration=iteration, **dict(arguments))


def _stats(store: Store, run_id: str, iteration: int | None) -> Iterator[tuple[str, int, int]]:
    for shard in store.shards(run_id, iteration):
        yield from _stat(shard.path)
        yield from _stat(shard.credit_path)
    folder = "*" if iteration is None else f"iteration={iteration:06d}"
    for table in ("graph", "training"):
        for path in store.root.glob(f"{table}/run_id={run_id}/{folder}/*.parquet"):
            yield from _stat(path)
    yield from _stat(store.history_path(run_id))


def _stat(path: Path) -> Iterator[tuple[str, int, int]]:
    """Yield what tells versions of a file apart; nothing for a file that is not there."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return
    yield str(path), found.st_size, found.st_mtime_ns
