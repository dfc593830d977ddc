"""Credit to write elsewhere, and the text files that it is written into; all exports share them."""

import gzip
import hashlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphcredit.store.errors import InputError
from graphcredit.store.layout import Shard, Store
from graphcredit.store.parquet.enriched import enriched_tables, estimator_columns
from graphcredit.store.parquet.shards import step_columns
from graphcredit.store.schema import estimator_column, split_estimator_column

ADVANTAGE = "advantage"


@dataclass(frozen=True, kw_only=True, slots=True)
class TrajectoryCredit:
    """The credit of one trajectory."""

    advantages: NDArray[np.float32]
    """[steps] NaN where a step has no credit."""
    actions: tuple[bytes, ...]
    """[steps] digests of the actions, by `digest`."""


def digest(action: str) -> bytes:
    """Return a short digest of an action."""
    return hashlib.blake2b(action.encode(), digest_size=8).digest()


def shards_to_export(store: Store, run_id: str | None, iteration: int | None) -> list[Shard]:
    """Return the step shards of a run and an iteration, or of all.

    Raises:
        InputError: There are none.
    """
    shards = store.shards(run_id, iteration)
    if not shards:
        raise InputError(
            f"{store.root} must have step shards of that run and iteration: found none (runs: "
            f"{', '.join(store.runs()) or 'none'})"
        )
    return shards


def estimators_with_credit(shards: Sequence[Shard], estimator: str | None) -> list[str]:
    """Return the estimators whose advantages some shard has, sorted; or the given one alone.

    Raises:
        InputError: There is no credit, or none by that estimator.
    """
    splits = (split_estimator_column(c.name) for c in estimator_columns(shards, estimator))
    names = sorted({split[0] for split in splits if split and split[1] == ADVANTAGE})
    if names:
        return names
    raise InputError(
        "no credit: no estimator has advantages of these steps. Run `graphcredit credit STORE "
        "--estimator NAME` first"
    )


def with_advantages(
    shard: Shard, columns: Sequence[str], estimators: Sequence[str]
) -> Iterator[pa.Table]:
    """Yield the steps of a shard with their advantages, one table a row group.

    Args:
        shard: The shard.
        columns: Step columns, the keys of `credit` among them.
        estimators: Each adds its column `NAME_advantage`; null where a step has no credit.

    Raises:
        SchemaError: A shard cannot be read, or the rows of the credit shard are others.
    """
    advantages = [estimator_column(f"{name}_{ADVANTAGE}") for name in estimators]
    return enriched_tables(shard, step_columns(columns), advantages)


def read_trajectories(shards: Sequence[Shard], estimator: str) -> dict[str, TrajectoryCredit]:
    """Return the credit of every trajectory by its id.

    Memory: some 200 bytes a step, whatever the length of its texts.

    Raises:
        InputError: Two iterations have a trajectory of one id.
        SchemaError: A shard cannot be read, or the rows of a credit shard are others.
    """
    homes: dict[str, tuple[str, int]] = {}
    steps: dict[str, list[tuple[int, float, bytes]]] = {}
    for shard in shards:
        home = shard.run_id, shard.iteration
        columns = ("trajectory_id", "step_index", "action")
        for table in with_advantages(shard, columns, [estimator]):
            rows = zip(*(table[name].to_pylist() for name in table.column_names), strict=True)
            for trajectory_id, step_index, action, advantage in rows:
                if (first := homes.setdefault(trajectory_id, home)) != home:
                    raise InputError(
                        "an exported trajectory must have an id of its own: "
                        f"{trajectory_id!r} is in run {first[0]}, iteration {first[1]} and in run "
                        f"{home[0]}, iteration {home[1]}. Choose with --run or --iteration"
                    )
                value = float("nan") if advantage is None else advantage
                step = step_index, value, digest(action)
                steps.setdefault(trajectory_id, []).append(step)
    return {name: _trajectory(steps.pop(name)) for name in list(steps)}


def _trajectory(steps: list[tuple[int, float, bytes]]) -> TrajectoryCredit:
    steps.sort(key=lambda step: step[0])
    return TrajectoryCredit(
        advantages=np.array([value for _, value, _ in steps], np.float32),
        actions=tuple(action for _, _, action in steps),
    )


@contextmanager
def text_file(path: Path, name: str) -> Generator[IO[bytes]]:
    """Open a new file.

    Args:
        path: Where it is written; it may be a temporary path.
        name: Its final name, whose suffix says how it is compressed.
    """
    with ExitStack() as opened:
        raw = opened.enter_context(path.open("wb"))
        match Path(name).suffix.lower():
            case ".gz":
                # Without a time, equal contents are equal files.
                packed = gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)
                content = opened.enter_context(packed)
            case ".zst":
                stream = pa.CompressedOutputStream(pa.PythonFile(raw, mode="w"), "zstd")
                content = opened.enter_context(stream)
            case _:
                content = raw
        yield cast("IO[bytes]", content)
