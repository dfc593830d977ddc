"""Measures the cost of file digests: CPU seconds with digests, divided by those without.

    python -m benchmarks.digest [--steps 1000000] [--token-steps 100000] [--repeats 3]

The log `steps` has the steps of `benchmarks.credit`, in the recorder's layout. The log `tokens`
also has a prompt of 500 tokens and a response of 100 with log-probabilities. Credit does not read
them, but the digest covers them. Each figure is the least of `--repeats`; runs with and without
digests take turns. A process verifies a file only once, so the record of verified files is cleared
before each timing. CPU seconds are those of all threads of the process.
"""

import argparse
import hashlib
import os
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.machine import describe
from benchmarks.synthetic import write_log
from graphcredit.credit.audit.run import audit
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store, create_store
from graphcredit.store.checks.run import check_store
from graphcredit.store.files.tables import write_table_unsynced
from graphcredit.store.parquet import shards
from graphcredit.trainer.data.step_filters import Filters
from graphcredit.trainer.data.step_index import read_index

FIVE = CreditSettings(estimators=configure(["grpo", "rloo", "gigpo", "rewardflow", "graphgpo"]))
HASHES: dict[str, Callable[[bytes], object]] = {
    "sha256": hashlib.sha256,
    "blake2b": hashlib.blake2b,
    "md5": hashlib.md5,
    "crc32": zlib.crc32,
}
PROMPT, RESPONSE = 500, 100


def main() -> None:
    """Print a row for each hash, and one for each operation that reads or writes a store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--token-steps", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    print(describe())
    _print_hashes(arguments.repeats)
    print(f"{'log':<8}{'what':<18}{'MB':>7}{'without s':>11}{'with s':>9}{'ratio':>7}")
    for name, num_steps in (("steps", arguments.steps), ("tokens", arguments.token_steps)):
        with tempfile.TemporaryDirectory() as folder:
            store = create_store(Path(folder) / "store")
            write_log(store.root, num_steps)
            if name == "tokens":
                _add_tokens(store)
            _print_rows(name, store, arguments.repeats)


def _print_hashes(repeats: int) -> None:
    data = np.random.default_rng(0).bytes(1 << 26)
    for name, function in HASHES.items():
        seconds = min(
            _cpu_seconds(lambda function=function: function(data)) for _ in range(repeats)
        )
        print(f"{name:<10}{len(data) / seconds / 1e6:>6.0f} MB/s")


def _print_rows(name: str, store: Store, repeats: int) -> None:
    first = store.shards()[0].path
    table = pq.ParquetFile(first).read()
    assign_credit(store, FIVE)
    works: dict[str, Callable[[], object]] = {
        "write a shard": lambda: write_table_unsynced(table, store.root / "one.tmp"),
        "credit": lambda: assign_credit(store, FIVE),
        "check": lambda: check_store(store),
        "audit": lambda: audit(store),
    }
    if name == "tokens":
        works["train: the index"] = lambda: _index(store)
    for what, work in works.items():
        seconds = {is_on: float("inf") for is_on in (False, True)}
        for _ in range(repeats):
            for is_on in seconds:
                _make_old(store)
                seconds[is_on] = min(seconds[is_on], _timed(work, is_on=is_on))
        size = sum(path.stat().st_size for path in store.root.rglob("*.parquet")) / 1e6
        size = first.stat().st_size / 1e6 if what.startswith("write") else size
        ratio = seconds[True] / seconds[False]
        print(
            f"{name:<8}{what:<18}{size:>7.0f}{seconds[False]:>11.2f}{seconds[True]:>9.2f}{ratio:>7.2f}"
        )


def _timed(work: Callable[[], object], *, is_on: bool) -> float:
    # Each measurement verifies anew.
    shards._verified.clear()  # pyright: ignore[reportPrivateUsage]
    if is_on:
        return _cpu_seconds(work)
    with (
        patch("graphcredit.store.parquet.shards.verify", lambda path, whole=True: True),
        patch("graphcredit.store.files.tables.seal", lambda path: None),
    ):
        return _cpu_seconds(work)


def _cpu_seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def _make_old(store: Store) -> None:
    """Set back the times of all files, because a fresh file is verified at every opening."""
    for path in store.root.rglob("*.parquet"):
        os.utime(path, (0, 0))


def _add_tokens(store: Store) -> None:
    random = np.random.default_rng(0)
    for shard in store.shards():
        table = pq.ParquetFile(shard.path).read()
        num_rows = table.num_rows
        prompts = random.integers(0, 50_000, num_rows * PROMPT, np.int32)
        responses = random.integers(0, 50_000, num_rows * RESPONSE, np.int32)
        logprobs = -random.random(num_rows * RESPONSE, np.float32)
        for name, values, length in (
            ("prompt_ids", prompts, PROMPT),
            ("response_ids", responses, RESPONSE),
            ("response_logprobs", logprobs, RESPONSE),
        ):
            offsets = pa.array(np.arange(num_rows + 1) * length, pa.int32())
            lists = pa.ListArray.from_arrays(offsets, pa.array(values))
            table = table.set_column(table.column_names.index(name), name, lists)
        ones = pa.array(np.ones(num_rows, np.float32))
        table = table.set_column(table.column_names.index("temperature"), "temperature", ones)
        write_table_unsynced(table, shard.path)


def _index(store: Store) -> object:
    filters = Filters(max_tokens=PROMPT + RESPONSE)
    return read_index(store, "r0", 0, column="graphgpo_advantage", filters=filters)


if __name__ == "__main__":
    main()
