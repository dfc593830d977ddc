"""Times that no calendar of Python has: commands that read them go on."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.viewer.chat.transcript import conversation
from tests.cli.in_process import run as graphcredit
from tests.examples import nightly
from tests.worlds import worked_example, write_store

FAR = {"year 33658": 10**18, "last": 2**63 - 2, "before Christ": -(10**17)}
"""Microseconds since 1970."""


@pytest.mark.parametrize("name", [nightly("year 33658"), "last", "before Christ"])
def test_steps_of_any_time_are_read(tmp_path: Path, name: str):
    store, micros = write_store(tmp_path / "store", worked_example()), FAR[name]
    for shard in store.shards():
        _set_time(shard.path, "logged_at", micros)
    for command in (
        ("check", store.root),
        ("credit", store.root, "-e", "spo3", "-e", "graphgpo"),
        ("audit", store.root),
        ("sql", store.root, "SELECT * FROM steps"),
        ("sql", store.root, "SELECT * FROM trajectories", "--format", "json"),
        ("sql", store.root, "SELECT * FROM steps", "--format", "csv"),
        ("export", store.root, tmp_path / "out"),
        ("view", store.root, "--bundle", tmp_path / "bundle"),
    ):
        result = graphcredit(*command)
        assert result.exit_code in (0, 1), result.err
    assert conversation(store, run_id="r0", iteration=0, trajectory_id="x")


def _set_time(path: Path, column: str, micros: int) -> None:
    table = pq.read_table(path)
    index, field = table.schema.get_field_index(column), table.schema.field(column)
    times = pa.array([micros] * table.num_rows, pa.int64()).cast(field.type)
    pq.write_table(table.set_column(index, field, times), path)
