"""Which iterations of which runs and stores a training reads, and which of their steps it may."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from graphcredit.store.errors import InputError, OptionError, QueryRefusedError
from graphcredit.store.layout import Shard, Store, open_store
from graphcredit.store.parquet.shards import conform, open_parquet, step_columns
from graphcredit.store.sql.sandbox import run_query
from graphcredit.trainer.data.ragged import Bools
from graphcredit.trainer.options import JobOptions, numbers_of

_KEYS = ("trajectory_id", "step_index")
_SECONDS = 3600.0


class RunIteration(NamedTuple):
    """An iteration of a run of a store."""

    store: Store
    run_id: str
    iteration: int

    def shards(self) -> list[Shard]:
        """Return its step shards.

        Raises:
            InputError: There are none.
        """
        shards = self.store.shards(self.run_id, self.iteration)
        if not shards:
            raise InputError(
                f"{self.store.root} must have step shards of run {self.run_id!r}, iteration "
                f"{self.iteration}: found none. Runs: {', '.join(self.store.runs()) or 'none'}; "
                "see `graphcredit check STORE`"
            )
        return shards


def chosen_parts(options: JobOptions) -> list[RunIteration]:
    """Return the iterations to train on: by default the newest one of the only run.

    Raises:
        InputError: There is no run, no iteration, or more than one to choose from.
    """
    stores = [open_store(root) for root in options.store]
    names = None if options.run is None else options.run.split(",")
    known = {run for store in stores for run in store.runs()}
    if lacking := [name for name in names or () if name not in known]:
        raise InputError(
            f"{', '.join(map(str, options.store))} has no steps of run {lacking[0]!r}; its runs: "
            f"{', '.join(sorted(known)) or 'none'}"
        )
    runs = [(store, run) for store in stores for run in _runs(store, names)]
    if options.iteration is not None:
        return [
            RunIteration(*each, number) for each in runs for number in numbers_of(options.iteration)
        ]
    parts = [RunIteration(store, run, max(store.iterations(run), default=0)) for store, run in runs]
    if len({part.iteration for part in parts}) > 1:
        listed = ", ".join(f"{part.run_id}: {part.iteration}" for part in parts)
        raise InputError(f"the newest iterations differ ({listed}): say which by --iteration")
    return parts


def _runs(store: Store, names: Sequence[str] | None) -> Sequence[str]:
    runs = store.runs()
    if names is None and len(runs) == 1:
        return runs
    found = [run for run in names or () if run in runs]
    if not found:
        raise InputError(
            f"{store.root} has {len(runs)} runs ({', '.join(runs) or 'none'}): say which by --run"
        )
    return found


def unmet(part: RunIteration, condition: str | None) -> dict[Path, Bools]:
    """Return of each row of the shards of an iteration whether it does not meet a condition.

    Args:
        part: The iteration.
        condition: SQL over the columns of the view `enriched`, of the rows of this iteration.
            Windows are allowed, such as `max(success) OVER (PARTITION BY trajectory_id)`.

    Raises:
        OptionError: DuckDB refuses it.
        SchemaError: A shard cannot be read.
    """
    if condition is None:
        return {}
    sql = (
        f"SELECT {', '.join(_KEYS)}, row_number() OVER () AS place FROM enriched "
        f"WHERE run_id = '{part.run_id}' AND iteration = {part.iteration} QUALIFY (\n{condition}\n)"
    )
    try:
        met = run_query(part.store, sql, max_rows=None, seconds=_SECONDS).table
    except QueryRefusedError as error:
        raise OptionError(
            f"filter must be a condition in SQL over the columns of the view enriched: {error}"
        ) from error
    kept = set(zip(*(met[name].to_pylist() for name in _KEYS), strict=True))
    left_out: dict[Path, Bools] = {}
    for path in (shard.path for shard in part.shards()):
        with open_parquet(path) as file:
            table = conform(file.read(columns=list(_KEYS)), step_columns(_KEYS), where=str(path))
        rows = zip(*(table[name].to_pylist() for name in _KEYS), strict=True)
        left_out[path] = np.array([row not in kept for row in rows])
    return left_out
