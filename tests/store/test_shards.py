"""Files from other programs read as the schema says."""

from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.store import create_store, read_steps
from graphcredit.store.checks.columns import check_columns
from graphcredit.store.checks.find_files import TableFile
from graphcredit.store.errors import SchemaError
from graphcredit.store.parquet.chunks import column_chunks
from graphcredit.store.parquet.shards import conform, open_parquet, step_columns
from graphcredit.store.schema import STEP_COLUMNS, STEP_SCHEMA
from tests.examples import nightly
from tests.worlds import step_table


def _write(root: Path, table: pa.Table) -> None:
    directory = root / "steps" / "run_id=r0" / "iteration=3"
    directory.mkdir(parents=True)
    pq.write_table(table, directory / "foreign.parquet")


def test_missing_nullable_columns_read_as_null(tmp_path: Path):
    store = create_store(tmp_path / "store")
    table = step_table([{"trajectory_id": "x", "state": "A", "next_state": "B"}])
    _write(store.root, table.drop_columns(["thought", "extra", "prompt_ids"]))
    (read,) = read_steps(store)
    assert read.schema.names == ["run_id", "iteration", *STEP_SCHEMA.names]
    assert read["prompt_ids"].null_count == 1
    assert read["iteration"].to_pylist() == [3]


def test_equivalent_types_are_cast_without_loss(tmp_path: Path):
    store = create_store(tmp_path / "store")
    table = step_table([{"trajectory_id": "x", "state": "A", "next_state": "B"}])
    wide = table.set_column(
        table.schema.get_field_index("step_index"), "step_index", table["step_index"].cast("int64")
    )
    wide = wide.set_column(
        wide.schema.get_field_index("state"), "state", wide["state"].cast(pa.large_string())
    )
    _write(store.root, wide)
    (read,) = read_steps(store, columns=["step_index", "state"])
    assert read.schema.field("step_index").type == pa.int32()
    assert read.schema.field("state").type == pa.string()


def test_a_missing_required_column_names_the_file_and_what_is_there(tmp_path: Path):
    store = create_store(tmp_path / "store")
    table = step_table([{"trajectory_id": "x", "state": "A", "next_state": "B"}])
    _write(store.root, table.drop_columns(["reward"]))
    with pytest.raises(SchemaError, match=r"foreign\.parquet must have the column 'reward'"):
        list(read_steps(store))


@pytest.mark.parametrize("state", [[["A"]], [{"role": "user"}]])
def test_text_that_is_no_text_is_named_however_it_is_read(tmp_path: Path, state: list[Any]):
    path = tmp_path / "foreign.parquet"
    table = step_table([{"trajectory_id": "x", "state": "A", "next_state": "B"}])
    position = table.schema.get_field_index("state")
    pq.write_table(table.set_column(position, "state", pa.array(state)), path)
    columns = step_columns(["state"])
    with open_parquet(path, dictionaries=["state"]) as file:
        read = file.read(columns=["state"])
    with pytest.raises(SchemaError, match="column 'state' must be string, found"):
        conform(read, columns, where="here", keep_dictionaries=True)


def test_text_that_is_not_utf8_is_named_however_it_is_read(tmp_path: Path):
    path = tmp_path / "foreign.parquet"
    table = step_table([{"trajectory_id": "x", "state": "A", "next_state": "B"}])
    position = table.schema.get_field_index("state")
    bad = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    pq.write_table(table.set_column(position, "state", bad), path)
    for dictionaries in ([], ["state"]):
        with open_parquet(path, dictionaries=dictionaries) as file:
            read = file.read()
        with pytest.raises(SchemaError, match=r"here: column 'state' must be UTF-8: .*UTF8"):
            conform(read, step_columns(["state"]), where="here", keep_dictionaries=True)


def test_a_column_whose_name_is_not_utf8_is_a_file_that_cannot_be_read(tmp_path: Path):
    path = tmp_path / "foreign.parquet"
    pq.write_table(pa.table({"thought": ["a"]}), path)
    path.write_bytes(path.read_bytes().replace(b"thought", b"\xffhought"))
    with pytest.raises(SchemaError, match=r"foreign\.parquet cannot be read as Parquet: .*0xff"):
        open_parquet(path)


def test_text_that_is_missing_is_named_however_it_is_read(tmp_path: Path):
    path = tmp_path / "foreign.parquet"
    table = step_table([{"trajectory_id": "x", "state": "A", "next_state": "B"}])
    pq.write_table(table.drop_columns(["state"]), path)
    with open_parquet(path, dictionaries=["state", "task_id"]) as file:
        read = file.read()
    with pytest.raises(SchemaError, match="here must have the column 'state'"):
        conform(read, step_columns(["state"]), where="here", keep_dictionaries=True)


def _look(path: Path, content: bytes, places: Sequence[int]) -> None:
    file = TableFile(
        kind="steps", path=path, relative="a", run_id="r", iteration=0, columns=STEP_COLUMNS
    )
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        check_columns(file)
        with suppress(SchemaError), open_parquet(path) as opened:
            column_chunks(opened, path, 0, ["state"])


@pytest.mark.parametrize("one_in", [4, nightly(1)])
def test_no_damage_of_a_footer_ends_the_process(tmp_path: Path, one_in: int):
    columns = ["task_id", "step_index", "state", "admissible_actions", "is_action_valid", "reward"]
    table = step_table([{"trajectory_id": "x", "state": "A", "next_state": "B"}])
    path = tmp_path / "a.parquet"
    pq.write_table(table.select(columns), path)
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    process = get_context("spawn").Process(
        target=_look, args=(path, content, range(footer, len(content), one_in))
    )
    process.start()
    process.join()
    assert process.exitcode == 0
