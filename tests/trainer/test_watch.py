"""Metrics: each update once in metrics.jsonl, and as rows of the store."""

import json
import re
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.store import Store, create_store
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import MissingDependencyError
from graphcredit.store.extras import how_to_install
from graphcredit.store.sql.catalog import connect
from graphcredit.store.sql.sandbox import run_query
from graphcredit.trainer.output.directory import Output
from graphcredit.trainer.output.metrics_log import TrainingLog, training_path, write_training


def _log(store: Store, output: Output, num_done: int) -> TrainingLog:
    path = training_path(store, "r", 0, output.root)
    return TrainingLog(output, path, num_done, is_writing=True)


def test_a_log_forgets_updates_that_the_weights_do_not_have(tmp_path: Path):
    store, output = create_store(tmp_path / "s"), Output(tmp_path / "out")
    output.root.mkdir()
    first = _log(store, output, 0)
    for update in range(4):
        first.write(update, {"loss": float(update)})
    first.close()
    with output.metrics_path.open("a", encoding="utf-8") as file:
        file.write('{"update": 4, "lo')
    second = _log(store, output, 2)
    second.write(2, {"loss": 20.0})
    second.close()
    lines = [json.loads(line) for line in output.metrics_path.read_text().splitlines()]
    assert [(row["update"], row["loss"]) for row in lines] == [(0, 0.0), (1, 1.0), (2, 20.0)]
    assert lines == second.rows


def test_a_training_is_rows_of_the_view(tmp_path: Path):
    store = create_store(tmp_path / "s")
    out = tmp_path / "policy-4"
    path = training_path(store, "r", 3, out)
    write_training(path, out, [{"update": 0, "epoch": 0, "loss": 0.5, "kl": None}])
    assert pq.read_metadata(path).num_rows == 1
    with connect(store) as connection:
        rows = connection.execute(
            "SELECT run_id, iteration, training, update, loss, kl FROM training"
        ).fetchall()
    assert rows == [("r", 3, "policy-4", 0, 0.5, None)]


def test_a_damaged_metrics_log_is_mended_from_the_store(tmp_path: Path):
    store, out = create_store(tmp_path / "s"), tmp_path / "out"
    rows = [{"update": update, "epoch": 0, "loss": float(update)} for update in range(3)]
    write_training(training_path(store, "r", 0, out), out, rows)
    output = Output(out)
    out.mkdir()
    output.metrics_path.write_text(
        '{"update": 0, "epoch": 0, "loss": 0.0}\n{"upd\x00\n[1]\n', encoding="utf-8"
    )
    log = _log(store, output, 3)
    log.close()
    lines = output.metrics_path.read_text(encoding="utf-8").splitlines()
    assert log.rows == [json.loads(line) for line in lines] == rows


def test_two_outputs_of_one_name_keep_their_metrics_apart(tmp_path: Path):
    store = create_store(tmp_path / "s")
    outs = [tmp_path / name / "policy" for name in ("a", "b")]
    for out in outs:
        write_training(training_path(store, "r", 0, out), out, [{"update": 0, "epoch": 0}])
    assert training_path(store, "r", 0, outs[0]).stem == "policy"
    with connect(store) as connection:
        names = connection.execute("SELECT training FROM training ORDER BY 1").fetchall()
    assert len(names) == 2
    assert names[0] == ("policy",)
    assert names[1][0].startswith("policy-")


def test_what_only_an_objective_tells_is_a_column_too(tmp_path: Path):
    store = create_store(tmp_path / "s")
    plain, own = tmp_path / "a", tmp_path / "b"
    write_training(
        training_path(store, "r", 0, plain), plain, [{"update": 0, "epoch": 0, "loss": 0.5}]
    )
    rows = [{"update": 0, "epoch": 0}, {"update": 1, "epoch": 0, "loss": 0.25, "pulled": 1}]
    write_training(training_path(store, "r", 0, own), own, rows)
    sql = "SELECT training, update, loss, pulled FROM training ORDER BY training, update"
    expected = [("a", 0, 0.5, None), ("b", 0, None, None), ("b", 1, 0.25, 1.0)]
    with connect(store) as connection:
        assert connection.execute(sql).fetchall() == expected
    locked = run_query(store, sql).table.to_pylist()
    assert [tuple(row.values()) for row in locked] == expected


def test_a_text_that_another_program_wrote_is_no_metric(tmp_path: Path):
    store = create_store(tmp_path / "s")
    path = training_path(store, "r", 0, tmp_path / "a")
    write_training(path, tmp_path / "a", [{"update": 0, "epoch": 0, "pulled": 0.5}])
    table = pq.read_table(path, partitioning=None)
    pq.write_table(table.append_column("note", pa.array(["fine"])), path)
    with connect(store) as connection:
        names = [row[0] for row in connection.execute("DESCRIBE training").fetchall()]
    assert "pulled" in names
    assert "note" not in names
    assert [violation.found for violation in check_store(store).violations] == ["column 'note'"]


def test_without_tensorboard_a_training_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    store, output = create_store(tmp_path / "s"), Output(tmp_path / "out")
    output.root.mkdir()
    with pytest.raises(MissingDependencyError, match=re.escape(how_to_install("train"))):
        _log(store, output, 0)
