"""States by a rule: files beside the step shards, which credit reads in place of logged states."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphcredit.store.errors import InputError
from graphcredit.store.files.tables import write_table
from graphcredit.store.layout import LOGGED_STATE, Shard
from graphcredit.store.parquet.shards import read_table
from graphcredit.store.schema import STATES_COLUMNS, STATES_KEY, arrow_schema

STATES_SCHEMA = arrow_schema(STATES_COLUMNS)

_KEYS, _STATES = ("trajectory_id", "step_index"), ("state", "next_state")


def write_states(shard: Shard, states: pa.Table, rule: str) -> None:
    """Write the states of a shard, in the order of its rows."""
    path = shard.states_path
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {**(states.schema.metadata or {}), STATES_KEY: rule.encode()}
    write_table(states.replace_schema_metadata(metadata), path)


def with_states(steps: pa.Table, shard: Shard, rows: NDArray[np.int64] | None = None) -> pa.Table:
    """Return steps of a shard with the states that credit is to read.

    Args:
        steps: Columns of the shard.
        shard: The shard.
        rows: [n] their rows in the shard; None for all of them.

    Raises:
        InputError: The states were never made, or are of other steps.
    """
    present = [name for name in _STATES if name in steps.column_names]
    if shard.state == LOGGED_STATE or not present:
        return steps
    if not shard.states_path.is_file():
        raise InputError(f"{shard.path} must have states by {shard.state!r}. {_remedy(shard)}")
    states = read_table(shard.states_path, STATES_COLUMNS)
    if rows is not None and (not len(rows) or rows[-1] < states.num_rows):
        states = states.take(pa.array(rows))
    if not _are_of(steps, states):
        raise InputError(
            f"{shard.states_path} must have the steps of its shard: it is of others. "
            f"{_remedy(shard)}"
        )
    for name in present:
        place = steps.schema.get_field_index(name)
        text = states[name].combine_chunks().dictionary_encode()
        steps = steps.set_column(place, name, pa.chunked_array([text]))
    return steps


def _are_of(steps: pa.Table, states: pa.Table) -> bool:
    keys: Sequence[str] = [name for name in _KEYS if name in steps.column_names]
    return steps.num_rows == states.num_rows and all(
        steps[name].cast(states[name].type).equals(states[name]) for name in keys
    )


def _remedy(shard: Shard) -> str:
    return f"Run `graphcredit states STORE --set {shard.state} --run {shard.run_id}`"
