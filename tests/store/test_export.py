"""Steps and credit as ordinary files."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from graphcredit.store.errors import InputError, SchemaError
from graphcredit.store.parquet.export import export_store
from tests.worlds import step_table, trajectory, worked_example, write_store


def _credited(root: Path) -> Store:
    dead = trajectory("dead", "A a B", success=None)
    store = write_store(root, worked_example(), dead, [])
    assign_credit(store, CreditSettings(estimators=configure(["grpo", "graphgpo"])))
    return store


def test_every_row_has_its_steps_and_its_credit(tmp_path: Path):
    store = _credited(tmp_path / "s")
    report = export_store(store, tmp_path / "out")
    assert (report.num_files, report.num_steps, report.num_without_credit) == (3, 9, 1)
    rows = pq.read_table(tmp_path / "out").to_pylist()
    assert len(rows) == 9
    first = next(r for r in rows if r["trajectory_id"] == "x" and r["step_index"] == 0)
    assert (first["run_id"], first["iteration"], first["action"]) == ("r0", 0, "a")
    assert first["graphgpo_advantage"] == pytest.approx(0.3692, abs=5e-5)
    assert [r["grpo_advantage"] for r in rows if r["trajectory_id"] == "dead"] == [None]


def test_a_file_has_what_the_directory_has_and_in_a_csv_lists_are_json(tmp_path: Path):
    store = _credited(tmp_path / "s")
    export_store(store, tmp_path / "out")
    report = export_store(store, tmp_path / "out.parquet")
    assert (report.num_files, report.num_steps, report.num_without_credit) == (1, 9, 1)
    rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert sorted(map(repr, rows)) == sorted(map(repr, pq.read_table(tmp_path / "out").to_pylist()))
    export_store(store, tmp_path / "out.csv", estimator="grpo")
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as lines:
        read = list(csv.DictReader(lines))
    assert [row["action"] for row in read] == [row["action"] for row in rows]
    given = [row["admissible_actions"] for row in rows]
    assert [json.loads(row["admissible_actions"] or "null") for row in read] == given
    assert float(read[0]["grpo_advantage"]) == pytest.approx(rows[0]["grpo_advantage"])
    assert "graphgpo_advantage" not in read[0]
    with pytest.raises(InputError, match="must be a new file"):
        export_store(store, tmp_path / "out.csv")


def test_shards_that_could_have_one_name_are_all_there(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    unpadded = store.root / "steps" / "run_id=r0" / "iteration=0"
    unpadded.mkdir()
    pq.write_table(step_table(trajectory("other", "A a B")), unpadded / "w0-000000.parquet")
    hyphens = store.steps_dir("r0-000000", 7)
    hyphens.mkdir(parents=True)
    pq.write_table(step_table(trajectory("x", "A a B")), hyphens / "w.parquet")
    pq.write_table(
        step_table(trajectory("y", "A a B")), store.steps_dir("r0", 0) / "000007-w.parquet"
    )
    report = export_store(store, tmp_path / "out")
    assert (report.num_files, report.num_steps) == (4, 11)
    files = sorted((tmp_path / "out").glob("*.parquet"))
    assert [path.name for path in files] == [
        "r0-000000-000007-w-2.parquet",
        "r0-000000-000007-w.parquet",
        "r0-000000-w0-000000-2.parquet",
        "r0-000000-w0-000000.parquet",
    ]
    assert sum(pq.ParquetFile(path).metadata.num_rows for path in files) == report.num_steps


def test_one_estimator_leaves_the_columns_of_the_others_out(tmp_path: Path):
    store = _credited(tmp_path / "s")
    export_store(store, tmp_path / "out", estimator="graphgpo")
    names = pq.read_table(tmp_path / "out").column_names
    assert [name for name in names if name.startswith(("grpo", "graphgpo"))] == [
        "graphgpo_advantage",
        "graphgpo_episode_advantage",
        "graphgpo_step_advantage",
        "graphgpo_step_reward",
    ]


def test_steps_without_credit_are_exported_with_nulls(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    report = export_store(store, tmp_path / "out")
    assert report.num_without_credit == report.num_steps == 8


def test_steps_without_the_credit_that_is_asked_for_are_counted(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example(), trajectory("more", "A a B"))
    assign_credit(store, CreditSettings(estimators=configure(["grpo"])))
    later = store.shards()[1].credit_path
    old = later.read_bytes()
    assign_credit(store, CreditSettings(estimators=configure(["gigpo"])))
    later.write_bytes(old)
    counts = {
        name: export_store(store, tmp_path / name, estimator=name).num_without_credit
        for name in ("grpo", "gigpo")
    }
    assert counts == {"grpo": 0, "gigpo": 1}


def test_nothing_is_overwritten(tmp_path: Path):
    store = _credited(tmp_path / "s")
    export_store(store, tmp_path / "out")
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    with pytest.raises(InputError, match="must be a new directory, or an empty one: it holds 'r0"):
        export_store(store, tmp_path / "out")
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_a_killed_export_is_not_there_and_the_next_one_removes_its_traces(tmp_path: Path):
    store, out = _credited(tmp_path / "s"), tmp_path / "out"
    code = (
        "import os\nfrom pathlib import Path\n"
        "from graphcredit.store import open_store\n"
        "from graphcredit.store.parquet.export import export_store\n"
        f"export_store(open_store({str(store.root)!r}), Path({str(out)!r}),"
        " on_progress=lambda what, done, total: done == 2 and os._exit(9))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    assert not out.exists()
    assert len(list(tmp_path.glob("out.*.tmp"))) == 1
    report = export_store(store, out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "s"]
    assert pq.read_table(out).num_rows == report.num_steps == 9


def test_an_empty_directory_and_a_link_to_one_are_filled(tmp_path: Path):
    store = _credited(tmp_path / "s")
    (tmp_path / "empty").mkdir()
    export_store(store, tmp_path / "empty")
    assert pq.read_table(tmp_path / "empty").num_rows == 9
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "out")
    export_store(store, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert pq.read_table(tmp_path / "disk" / "out").num_rows == 9


@pytest.mark.parametrize("kind", ["file", "pipe", "circle"])
def test_what_cannot_become_a_directory_is_refused_and_stays(tmp_path: Path, kind: str):
    store, out = _credited(tmp_path / "s"), tmp_path / "out"
    match kind:
        case "file":
            out.touch()
        case "pipe":
            os.mkfifo(out)
        case _:
            out.symlink_to(out)
    with pytest.raises(InputError, match="it is no directory"):
        export_store(store, out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "s"]


def test_an_estimator_without_credit_is_refused_with_those_that_have(tmp_path: Path):
    with pytest.raises(InputError, match="there is credit by graphgpo, grpo"):
        export_store(_credited(tmp_path / "s"), tmp_path / "out", estimator="gigpo")


@pytest.mark.parametrize("rows", [[1, 0, 2, 3, 4, 5, 6, 7], [*range(8), 7], [*range(7)]])
def test_credit_of_other_rows_is_refused(tmp_path: Path, rows: list[int]):
    store = _credited(tmp_path / "s")
    path = store.shards()[0].credit_path
    table = pq.ParquetFile(path).read()
    pq.write_table(table.take(pa.array(rows)), path)
    with pytest.raises(SchemaError, match="must have the rows of its step shard"):
        export_store(store, tmp_path / "out")
    assert list(tmp_path.iterdir()) == [tmp_path / "s"]
