"""The summary of an iteration: is it made of what the store has now?

The credit stage writes it beside the credit: sums over the steps of each trajectory, so that a
viewer need not read all steps to list them. Each of its tables says of which step and credit shards
it was made. A reader that finds others reads the shards themselves.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal, TypeAlias

from graphcredit.store.errors import InputError
from graphcredit.store.layout import Shard, Store
from graphcredit.store.parquet.shards import fingerprint, open_parquet
from graphcredit.store.schema import SUMMARY_KEY

TABLES = ("trajectories", "advantages")
"""Names of the tables, each a file of the folder `summary/run_id=…/iteration=…`."""

SummaryState: TypeAlias = Literal["current", "stale", "unreadable", "none"]
"""`stale`: of other step or credit shards than there are. `unreadable`: a table is missing, damaged
or of a newer schema. `none`: the iteration has no summary."""

_VERSION = 1
"""Of what the columns mean."""


def summary_mark(
    steps: str | None,
    credit: Iterable[Path],
    *,
    written: Mapping[Path, Path] = MappingProxyType({}),
) -> str:
    """Return what the tables of a summary say of what they were made of.

    Args:
        steps: The mark of the step shards, `Sources.steps`.
        credit: All credit shards of the iteration.
        written: Where the bytes of credit shards are that do not have their names yet.

    Raises:
        OSError: A credit shard cannot be read.
    """
    marks = {"steps": steps, "credit": fingerprint(credit, written=written), "version": _VERSION}
    return json.dumps(marks, sort_keys=True)


def summary_paths(store: Store, run_id: str, iteration: int) -> dict[str, Path]:
    """Return where the tables of a summary are, if it has any: name to path."""
    folder = store.summary_dir(run_id, iteration)
    return {name: folder / f"{name}.parquet" for name in TABLES}


def summary_state(store: Store, shards: Sequence[Shard]) -> SummaryState:
    """Return whether the summary of an iteration is made of what there is. Footers are read.

    Args:
        store: The store.
        shards: All step shards of the iteration; at least one.
    """
    paths = summary_paths(store, shards[0].run_id, shards[0].iteration).values()
    if not any(path.exists() for path in paths):
        return "none"
    said: set[bytes | None] = set()
    try:
        for path in paths:
            with open_parquet(path, whole=False) as file:
                said.add((file.schema_arrow.metadata or {}).get(SUMMARY_KEY))
    except InputError:
        return "unreadable"
    try:
        steps = fingerprint(shard.path for shard in shards)
        wanted = summary_mark(steps, [shard.credit_path for shard in shards])
    except OSError:  # a shard has no credit
        return "stale"
    return "current" if said == {wanted.encode()} else "stale"
