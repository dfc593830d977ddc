"""Take trajectories out of the step shards of an iteration, where longer copies replace them."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

import hashlib
import shutil
from collections.abc import Set
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.store.errors import InputError
from graphcredit.store.files.atomic import atomic_path, sync_directory
from graphcredit.store.files.tables import write_table
from graphcredit.store.layout import Shard, Store
from graphcredit.store.parquet.shards import open_parquet
from graphcredit.store.tree import walk_tree


def take_out(store: Store, run_id: str, iteration: int, trajectories: Set[str]) -> None:
    """Write the shards that have some trajectories again, without these.

    Each shard is copied to `quarantine/` before. What was made of its rows, credit and states by a
    rule, is removed: the groups have changed. The shard is replaced at once, after that. So a kill
    leaves the old rows or the new ones, and the same call again takes out the rest.

    Raises:
        InputError: A shard has a second name; nothing was changed.
        SchemaError: A shard cannot be read.
    """
    ids = pa.array(sorted(trajectories), pa.string())
    shards = [s for s in store.shards(run_id, iteration) if pc.any(_is_among(s, ids)).as_py()]
    tree = walk_tree(store.root)
    for shard in shards:
        name = tree.other_name(shard.path.relative_to(store.root).as_posix())
        if name is not None:
            raise InputError(
                f"{shard.path} must have one name before its rollouts are replaced: it is also "
                f"{name}. Remove one of the two"
            )
    for shard in shards:
        _keep_copy(store, shard.path)
        ends = shard.with_state("").states_path
        for made in (shard.credit_path, *ends.parent.glob(f"*{ends.name}")):
            made.unlink(missing_ok=True)
        with open_parquet(shard.path) as parquet:
            table = parquet.read()
        rest = table.filter(pc.invert(_is_among(shard, ids)))
        if rest.num_rows:
            write_table(rest, shard.path)
        else:
            shard.path.unlink()
            sync_directory(shard.path.parent)


def _is_among(shard: Shard, ids: pa.Array) -> pa.ChunkedArray:
    """Return for each row of a shard whether it is of one of some trajectories."""
    with open_parquet(shard.path) as parquet:
        column = parquet.read(columns=["trajectory_id"])["trajectory_id"]
    return pc.is_in(column.cast(pa.string()), value_set=ids)


def _keep_copy(store: Store, path: Path) -> None:
    """Copy a shard to `quarantine/`, under a name that says where it was."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:12]
    *_, run, iteration, name = path.with_suffix("").parts
    copy = store.quarantine_dir / f"steps.{run}.{iteration}.{name}.{digest}.parquet"
    with atomic_path(copy) as temporary:
        shutil.copyfile(path, temporary)
