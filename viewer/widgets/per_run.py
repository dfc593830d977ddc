"""Ask a query of several runs."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from graphcredit.store.errors import GraphcreditError
from graphcredit.store.layout import Store
from graphcredit.viewer.widgets import missing
from graphcredit.viewer.widgets.cache import ask


def per_run(
    store: Store,
    runs: Sequence[str],
    query: Callable[..., pa.Table],
    what: str | None,
    **arguments: Any,
) -> pa.Table | None:
    """Return the result of a query for all runs, with a column `run`; None if nothing can be read.

    If a run has a damaged file, it is queried iteration by iteration, so that the undamaged
    iterations are shown. `what` is the subject of the message about the others; with None there is
    no message.
    """
    parts: list[pa.Table] = []
    for run in runs:
        try:
            found = [ask(query, run_id=run, iteration=None, **arguments)]
        except GraphcreditError:
            found = []
            for iteration in store.iterations(run):
                with missing.guarded(what) if what else suppress(GraphcreditError):
                    found.append(ask(query, run_id=run, iteration=iteration, **arguments))
        parts += [part.add_column(0, "run", pa.repeat(run, part.num_rows)) for part in found]
    return pa.concat_tables(parts) if parts else None
