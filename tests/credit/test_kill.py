"""`graphcredit credit` killed for real, again and again: the store always reads."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from tests.worlds import worked_example, write_store

NUM_SHARDS, NUM_KILLS = 40, 8


def _command(store: Store, normalize: str) -> list[str]:
    command = [sys.executable, "-m", "graphcredit.cli.main", "credit", str(store.root)]
    return [*command, "-e", "grpo", "--set", f"grpo.normalize={normalize}"]


def _first_advantages(store: Store) -> set[float]:
    """Return x0's advantage in every shard; reading checks that each file is whole."""
    tables = [pq.ParquetFile(shard.credit_path).read() for shard in store.shards()]
    assert {table.num_rows for table in tables} == {8}
    return {round(table["grpo_advantage"][0].as_py(), 4) for table in tables}


@pytest.mark.parametrize("num_kills", [1, pytest.param(NUM_KILLS, marks=pytest.mark.slow)])
def test_a_killed_run_leaves_every_credit_shard_whole(tmp_path: Path, num_kills: int):
    shards = [worked_example(f"task-{number}") for number in range(NUM_SHARDS)]
    store = write_store(tmp_path / "s", *shards)
    start = time.perf_counter()
    subprocess.run(_command(store, "std"), check=True, capture_output=True)
    duration = time.perf_counter() - start
    assert _first_advantages(store) == {1.1547}

    moments = random.Random(0)
    for _ in range(num_kills):
        process = subprocess.Popen(_command(store, "none"), stdout=subprocess.DEVNULL)
        time.sleep(moments.uniform(0.3, 1.0) * duration)
        process.kill()
        process.wait()
        assert _first_advantages(store) <= {1.1547, 6.7}

    estimators = configure(["grpo"], ["grpo.normalize=none"])
    assign_credit(store, CreditSettings(estimators=estimators))
    assert _first_advantages(store) == {6.7}
