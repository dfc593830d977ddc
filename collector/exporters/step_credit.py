"""Credit to write elsewhere, and the text files that it is written into; all exports share them."""

import gzip
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, cast

import pyarrow as pa

from graphcredit.store.errors import InputError
from graphcredit.store.layout import Shard, Store
from graphcredit.store.parquet.enriched import enriched_tables, estimator_columns
from graphcredit.store.parquet.shards import step_columns
from graphcredit.store.schema import estimator_column, split_estimator_column

ADVANTAGE = "advantage"


def shards_to_export(store: Store, run_id: str | None, iteration: int | None) -> list[Shard]:
    """Return the step shards of a run and an iteration, or of all."""
    shards = store.shards(run_id, iteration)
    if not shards:
        raise InputError(
            f"{store.root} must have step shards of that run and iteration: found none (runs: "
            f"{', '.join(store.runs()) or 'none'})"
        )
    return shards


def estimators_with_credit(shards: Sequence[Shard], estimator: str | None) -> list[str]:
    """Return the estimators whose advantages some shard has, sorted; or the given one alone."""
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
    """
    advantages = [estimator_column(f"{name}_{ADVANTAGE}") for name in estimators]
    return enriched_tables(shard, step_columns(columns), advantages)


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
