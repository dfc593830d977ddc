"""Cache the results of queries while the files of the store stay the same."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import streamlit as st

from graphcredit.store.layout import Store, open_store
from graphcredit.store.parquet.snapshot import Stamp, stamp
from graphcredit.viewer.config import STORE_VARIABLE

_T = TypeVar("_T")


def viewed_store() -> Store:
    """Return the store that this viewer shows."""
    return open_store(os.environ[STORE_VARIABLE])


def ask(
    query: Callable[..., _T], *, run_id: str | None, iteration: int | None, **arguments: Any
) -> _T:
    """Return the cached result of a query about an iteration, a run or all runs.

    Args:
        query: A function of `viewer/queries`: `query(store, run_id=…, iteration=…, …)`.
        run_id: The run; None for all, if the query allows it.
        iteration: The iteration; None for all, if the query allows it.
        arguments: More arguments of the query, all hashable.

    Raises:
        GraphcreditError: The query raised it; errors are not cached.
    """
    store = viewed_store()
    name = f"{query.__module__}.{query.__qualname__}"
    asked = (str(store.root), run_id, iteration, tuple(sorted(arguments.items())))
    return _answer(query, name, asked, stamp(store, run_id, iteration))


@st.cache_data(max_entries=500, max_size="512MB", show_spinner="Reading the store …")
def _answer(_query: Callable[..., Any], name: str, asked: tuple[Any, ...], files: Stamp) -> Any:
    _, run_id, iteration, arguments = asked
    return _query(viewed_store(), run_id=run_id, iteration=iteration, **dict(arguments))
