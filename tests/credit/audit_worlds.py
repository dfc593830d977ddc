"""Stores with planted faults, and the sound one they are made from."""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import count, cycle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.credit.audit import run
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from graphcredit.store.schema import CONFIGURATION_KEY
from tests.worlds import START, trajectory, write_store

Row = dict[str, Any]

ESTIMATORS = ("grpo", "rloo", "gigpo", "hgpo", "rewardflow", "graphgpo", "g2po")

_seconds = count()


def rollout(name: str, path: str, *, task: str = "t0", **options: Any) -> list[Row]:
    """Return one trajectory whose steps have times of their own."""
    rows = trajectory(f"{task}-{name}", path, task_id=task, **options)
    for row in rows:
        row["logged_at"] = START + timedelta(seconds=next(_seconds))
    return rows


def win(name: str, path: str = "S up M win G", **options: Any) -> list[Row]:
    """Return a success with return 1."""
    rewards = [0.0] * (len(path.split()) // 2 - 1) + [1.0]
    return rollout(name, path, **({"rewards": rewards, "success": True} | options))


def sound_group(task: str = "t0") -> list[Row]:
    """Return a group without a fault.

    Two successes go straight S → M → goal, two failures stay at S. S is left six times, M twice.
    """
    return [
        *win("a", task=task),
        *win("b", "S up M jump G", task=task),
        *rollout("c", "S wait S look S", task=task),
        *rollout("d", "S look S wait S", task=task),
    ]


@contextmanager
def making_only(*checks: str) -> Generator[None]:
    """Let audits make these checks alone, and count groups: most of the time goes to the rest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "CHECKS", tuple(c for c in run.CHECKS if c.name in checks))
        patch.setattr(run, "NUMBERS", [row for row in run.NUMBERS if row.name == "group sizes"])
        yield


def credited(root: Path, *shards: list[Row], settings: tuple[str, ...] = ()) -> Store:
    """Write a store and assign credit to it."""
    store = write_store(root, *shards)
    assign_credit(store, CreditSettings(estimators=configure(ESTIMATORS, settings)))
    return store


def sound(root: Path) -> Store:
    """Return two sound groups, with credit."""
    return credited(root, [*sound_group("t0"), *sound_group("t1")])


def renamed(rows: list[Row], name: str, **columns: Any) -> list[Row]:
    """Return the steps of a trajectory under another name."""
    return [row | {"trajectory_id": name} | columns for row in rows]


def at(rows: list[Row], time: datetime) -> list[Row]:
    """Return steps that were all logged at one time."""
    return [row | {"logged_at": time} for row in rows]


def change_credit(store: Store, change: Callable[[Row], Row], shard: int = 0) -> Store:
    """Rewrite the rows of a credit shard, as another program might have written them."""
    path = store.shards()[shard].credit_path
    table = pq.ParquetFile(path).read()
    keys = pq.ParquetFile(store.shards()[shard].path).read(columns=["task_id", "state", "action"])
    rows = []
    for row, key in zip(table.to_pylist(), keys.to_pylist(), strict=True):
        rows.append({name: (row | change(row | key))[name] for name in table.column_names})
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    return store


def change_configuration(store: Store, made_by: Any, shard: int) -> Store:
    """Let a credit shard say that its columns were made in another way."""
    path = store.shards()[shard].credit_path
    table = pq.ParquetFile(path).read()
    metadata = {**table.schema.metadata, CONFIGURATION_KEY: json.dumps(made_by).encode()}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    return store


def painted_rooms(root: Path) -> Store:
    """Return a store of four groups in which a red and a blue room are merged."""
    rows: list[Row] = []
    for number in range(4):
        for name, colour in zip("abcd", ("red", "red", "blue", "blue"), strict=True):
            path = ["start", f"paint {colour}", *(f"room {colour}", "wait") * 3, f"room {colour}"]
            rows += trajectory(f"t{number}-{name}", path, task_id=f"t{number}")
    store = write_store(root, rows)
    merge = MergeSettings(substitute=("red|blue=>",))
    assign_credit(store, CreditSettings(estimators=configure(["grpo"]), merge=merge))
    return store


def merged_without_noise(root: Path, guard: bool, **actions: list[list[str] | None]) -> Store:
    """Return a store of the states S and S!, merged into one.

    Args:
        root: Where.
        guard: Whether admissible actions may keep them apart.
        actions: Of `plain` (four steps leave S) and of `noisy` (two leave S!), in turn.
    """
    rows = [
        *win("a"),
        *win("b"),
        *rollout("c", "S! wait S look S"),
        *rollout("d", "S! look S wait S"),
    ]
    turns = {"S": cycle(actions["plain"]), "S!": cycle(actions["noisy"])}
    for row in rows:
        row["admissible_actions"] = next(turns[row["state"]]) if row["state"] in turns else None
    store = write_store(root, rows)
    merge = MergeSettings(substitute=("!=>",), guard=guard)
    report = assign_credit(store, CreditSettings(estimators=configure(["grpo"]), merge=merge))
    assert report["r0", 0].num_refused_merges == 0, "precondition: the two are one node"
    return store
