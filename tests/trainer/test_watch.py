"""Metrics: each update once in the journal, and as rows of the store."""

import json
from pathlib import Path

import pyarrow.parquet as pq

from graphcredit.store import create_store
from graphcredit.store.catalog import connect
from graphcredit.trainer.watch import Journal, write_training


def test_a_journal_forgets_updates_that_the_weights_do_not_have(tmp_path: Path):
    path = tmp_path / "metrics.jsonl"
    first = Journal(path, 0)
    for update in range(4):
        first.log(update, {"loss": float(update)})
    first.close()
    with path.open("a", encoding="utf-8") as file:
        file.write('{"update": 4, "lo')
    second = Journal(path, 2)
    second.log(2, {"loss": 20.0})
    second.close()
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [(row["update"], row["loss"]) for row in lines] == [(0, 0.0), (1, 1.0), (2, 20.0)]
    assert lines == second.rows


def test_a_training_is_rows_of_the_view(tmp_path: Path):
    store = create_store(tmp_path / "s")
    path = store.training_path("r", 3, "policy-4")
    write_training(path, "policy-4", [{"update": 0, "epoch": 0, "loss": 0.5, "kl": None}])
    assert pq.read_metadata(path).num_rows == 1
    with connect(store) as connection:
        rows = connection.execute(
            "SELECT run_id, iteration, training, update, loss, kl FROM training"
        ).fetchall()
    assert rows == [("r", 3, "policy-4", 0, 0.5, None)]
