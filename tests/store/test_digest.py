"""A flipped bit is found in every file of a store, by everyone who reads it."""

import random
import shutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.cli.main import main
from graphcredit.credit.audit.run import audit
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store, open_store
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import DamagedFileError
from graphcredit.store.files.digest import DIGEST_KEY, verify
from graphcredit.store.files.tables import write_table
from graphcredit.store.parquet.er_graph import ErGraph, merge_er_graph, read_er_graph
from graphcredit.store.parquet.export import export_store
from graphcredit.store.parquet.shards import is_verified, open_parquet
from graphcredit.store.schema import ENTITY_COLUMNS, RELATION_COLUMNS, arrow_schema
from graphcredit.store.sql.catalog import run_trusted_query
from graphcredit.trainer.data.parts import RunIteration
from graphcredit.trainer.data.step_filters import Filters
from graphcredit.trainer.data.step_index import read_index
from tests.trainer.logs import token_store
from tests.worlds import step_table, worked_example

SETTINGS = CreditSettings(estimators=configure(["grpo", "spo3"]))


def verified_store(root: Path) -> Store:
    """Return five steps with tokens, and every table that is made of them, as our writer does."""
    shutil.copytree(Path(_original().name, "store"), root)
    return open_store(root)


@cache
def _original() -> "TemporaryDirectory[str]":
    """Make the store once; it is removed when this process ends."""
    folder = TemporaryDirectory()
    store = token_store(Path(folder.name, "store"))
    (shard,) = store.shards()
    shard.credit_path.unlink()
    write_table(pq.read_table(shard.path, partitioning=None), shard.path)
    assign_credit(store, SETTINGS)
    entity = {"task_id": "t0", "entity_id": "e0", "name": "Ada", "is_answer": True}
    relation = {"task_id": "t0", "head_id": "e0", "relation": "knows", "tail_id": "e0"}
    tables = ((ENTITY_COLUMNS, entity), (RELATION_COLUMNS, relation))
    rows = [pa.Table.from_pylist([row], arrow_schema(columns)) for columns, row in tables]
    merge_er_graph(store, ErGraph(entities=rows[0], relations=rows[1]))
    return folder


def flip(path: Path, byte: int, bit: int = 0) -> None:
    """Change one bit of a file."""
    content = bytearray(path.read_bytes())
    content[byte] ^= 1 << bit
    path.write_bytes(content)


def flip_value(path: Path, column: str) -> None:
    """Change one bit of a column, such that Parquet's readers read another value and no error."""
    before = pq.read_table(path, partitioning=None)
    chunk = pq.read_metadata(path).row_group(0).column(before.column_names.index(column))
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    for byte in reversed(range(start, start + chunk.total_compressed_size)):
        flip(path, byte)
        try:
            table = pq.read_table(path, partitioning=None)
            if table.num_rows == before.num_rows and table[column] != before[column]:
                return
        except (pa.ArrowException, OSError):
            pass
        flip(path, byte)
    raise AssertionError(f"no flip in {column} reads as another value")


def _files(store: Store) -> list[Path]:
    return sorted(store.root.rglob("*.parquet"))


def test_no_flip_cut_or_addition_is_taken_for_the_file(tmp_path: Path):
    path, damaged = tmp_path / "sound.parquet", tmp_path / "damaged.parquet"
    write_table(step_table(worked_example()), path)
    assert verify(path)
    whole = path.read_bytes()
    choose = random.Random(0)
    places = [*range(12), *range(len(whole) - 500, len(whole))]
    places += choose.sample(range(len(whole)), 300)
    flipped = [(place, choose.randrange(8)) for place in places]
    contents = [
        whole[:place] + bytes((whole[place] ^ 1 << bit,)) + whole[place + 1 :]
        for place, bit in flipped
    ]
    contents += [whole[:place] for place in range(len(whole) - 1, 0, -197)]
    contents += [whole[:place] + whole[place + 1 :] for place in range(0, len(whole) - 8, 197)]
    contents += [whole + b"\0", whole + whole, whole + b"PAR1", b"\0" * len(whole)]
    for content in contents:
        damaged.write_bytes(content)
        with pytest.raises(DamagedFileError, match=r"damaged\.parquet"):
            open_parquet(damaged)


def test_the_footer_alone_vouches_for_itself(tmp_path: Path):
    path = tmp_path / "a.parquet"
    write_table(step_table(worked_example()), path)
    flip(path, 40)
    assert verify(path, whole=False)
    flip(path, path.stat().st_size - 700)
    with pytest.raises(DamagedFileError, match="its footer has another digest"):
        verify(path, whole=False)


def test_what_another_program_writes_is_unverified_also_where_it_copies_the_digest(tmp_path: Path):
    path, copy = tmp_path / "a.parquet", tmp_path / "b.parquet"
    write_table(step_table(worked_example()), path)
    table = pq.read_table(path)
    assert DIGEST_KEY in table.schema.metadata
    pq.write_table(table, copy)
    assert not verify(copy)
    assert not is_verified(copy)
    # Our own writer gives it a digest of its own.
    write_table(table.slice(1), copy)
    assert verify(copy)


def test_a_file_that_changes_right_after_it_was_verified_is_verified_again(tmp_path: Path):
    path = tmp_path / "a.parquet"
    write_table(step_table(worked_example()), path)
    open_parquet(path).close()
    flip(path, 40)
    with pytest.raises(DamagedFileError):
        open_parquet(path)


def test_check_verifies_every_file_and_names_those_that_are_damaged(tmp_path: Path):
    store = verified_store(tmp_path / "store")
    report = check_store(store)
    assert (report.errors, report.num_files, report.num_unverified) == ((), 7, 0)
    sound = {path: path.read_bytes() for path in _files(store)}
    for place in (40, -700, -300, -6):
        for path, content in sound.items():
            path.write_bytes(content)
            flip(path, place % len(content))
        report = check_store(store)
        names = {path.relative_to(store.root).as_posix() for path in sound}
        assert {error.file for error in report.errors if error.rule.name == "readable"} == names
        assert report.num_files == 0


READERS: dict[str, list[Callable[[Store], object]]] = {
    "steps": [
        lambda store: assign_credit(store, SETTINGS),
        lambda store: _index(store),
        lambda store: export_store(store, store.root.with_name("out")),
        audit,
    ],
    "credit": [
        lambda store: _index(store),
        lambda store: export_store(store, store.root.with_name("out")),
        audit,
    ],
    "graph": [audit],
    "history": [lambda store: assign_credit(store, SETTINGS)],
    "er_graph": [read_er_graph],
}
_CHANGED = {
    "steps": "reward",
    "credit": "grpo_advantage",
    "graph": "success_rate",
    "history": "score",
    "er_graph": "name",
}


def _index(store: Store) -> object:
    filters = Filters(max_tokens=100)
    return read_index([RunIteration(store, "r0", 0)], column="grpo_advantage", filters=filters)


@pytest.mark.parametrize("kind", READERS)
def test_a_value_that_changed_is_refused_by_who_reads_it(tmp_path: Path, kind: str):
    store = verified_store(tmp_path / "store")
    paths = sorted((store.root / kind).rglob("*.parquet"))
    path = next(path for path in paths if path.name not in ("edges.parquet", "relations.parquet"))
    flip_value(path, _CHANGED[kind])
    before = {other: other.read_bytes() for other in _files(store)}
    for read in READERS[kind]:
        with pytest.raises(DamagedFileError, match=path.name):
            read(store)
    assert {other: other.read_bytes() for other in _files(store)} == before
    (error,) = check_store(store).errors
    assert (error.file, error.rule.name) == (path.relative_to(store.root).as_posix(), "readable")
    assert error.takes_out is not None


def test_damaged_credit_is_not_kept_and_credit_says_so(tmp_path: Path):
    store = verified_store(tmp_path / "store")
    (shard,) = store.shards()
    flip_value(shard.credit_path, "grpo_advantage")
    reports = assign_credit(store, CreditSettings(estimators=configure(["rloo"])))
    (notice,) = reports["r0", 0].notices
    assert str(shard.credit_path) in notice
    assert "it is written anew" in notice
    assert "grpo_advantage" not in pq.read_schema(shard.credit_path).names


def test_damage_is_one_line_and_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    store = verified_store(tmp_path / "store")
    (shard,) = store.shards()
    flip_value(shard.path, "reward")
    for command in (["credit", "-e", "grpo"], ["audit"], ["check"]):
        command.insert(1, str(store.root))
        monkeypatch.setattr(sys, "argv", ["graphcredit", *command])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert ended.value.code == 1, command
        (line,) = [text for text in (out + err).splitlines() if "another digest" in text]
        assert shard.path.name in line
        assert "Traceback" not in err


def test_unverified_files_are_counted_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    store = verified_store(tmp_path / "store")
    for name in ("entities", "relations"):
        path = store.root / "er_graph" / f"{name}.parquet"
        pq.write_table(pq.read_table(path, partitioning=None), path)
    report = check_store(store)
    assert (report.errors, report.num_files, report.num_unverified) == ((), 7, 2)
    monkeypatch.setattr(sys, "argv", ["graphcredit", "check", str(store.root)])
    with pytest.raises(SystemExit, match="0"):
        main()
    (line, _) = capsys.readouterr().out.splitlines()
    assert line.startswith("unverified: 2 of 7 files, without a digest because ")


def test_a_damaged_footer_is_refused_before_duckdb_reads_it(tmp_path: Path):
    store = verified_store(tmp_path / "store")
    (shard,) = store.shards()
    flip(shard.path, shard.path.stat().st_size - 700)
    with pytest.raises(DamagedFileError, match="its footer has another digest"):
        run_trusted_query(store, "SELECT 1")


def test_views_read_only_footers_before_a_query(tmp_path: Path):
    store = verified_store(tmp_path / "store")
    (shard,) = store.shards()
    flip_value(shard.credit_path, "grpo_advantage")
    flip_value(store.graph_dir("r0", 0) / "nodes.parquet", "visits")
    states = run_trusted_query(store, "SELECT DISTINCT state FROM credit_state").table
    assert states.to_pylist() == [{"state": "current"}]
