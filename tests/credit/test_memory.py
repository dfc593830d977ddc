"""Credit without a store: the same numbers, from a table in memory."""

import random
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.credit import assign, compute
from graphcredit.credit.settings import CreditSettings
from graphcredit.credit.table import ESTIMATORS, configure
from graphcredit.store.errors import InputError, OptionError, SchemaError
from tests.worlds import step_table, trajectory, worked_example, write_store

ALL = [row.name for row in ESTIMATORS if row.name != "sapo"]


def test_the_worked_example_without_a_store():
    credit = compute(step_table(worked_example()), estimators=["rloo", "graphgpo"])
    assert credit["rloo_advantage"].to_pylist() == pytest.approx(
        [10.05] * 4 + [-4.95] * 2 + [-5.1] * 2
    )
    assert credit["graphgpo_advantage"][4].as_py() == pytest.approx(0.5240, abs=5e-5)
    assert credit["state_id"].to_pylist() == [0, 1, 0, 2, 0, 2, 0, 0]


def test_a_polars_frame_in_any_order_gives_its_rows_in_that_order():
    table = step_table(worked_example())
    frame = pl.DataFrame(pl.from_arrow(table))
    order = list(range(8))
    random.Random(3).shuffle(order)
    straight = compute(frame, estimators=["gigpo"]).to_pylist()
    assert compute(frame[order], estimators=["gigpo"]).to_pylist() == [straight[i] for i in order]


def test_memory_and_store_give_the_same(tmp_path: Path):
    first = [*worked_example(), *trajectory("dead", "A a B", success=None)]
    second = [*trajectory("v", "A a B b D"), *trajectory("w", "A c C d won", success=True)]
    write_store(tmp_path / "s", first, iteration=0)
    store = write_store(tmp_path / "s", second, iteration=5)
    assign(store, CreditSettings(estimators=configure(ALL)))
    expected = [pq.ParquetFile(shard.credit_path).read() for shard in store.shards()]
    parts = [
        step_table(rows)
        .append_column("run_id", pa.array(["r0"] * len(rows)))
        .append_column("iteration", pa.array([number] * len(rows)))
        for number, rows in ((5, second), (0, first))
    ]
    credit = compute(pa.concat_tables(parts), estimators=ALL)
    assert credit.slice(len(second)).to_pylist() == expected[0].to_pylist()
    assert credit.slice(0, len(second)).to_pylist() == expected[1].to_pylist()


def test_options_are_given_as_the_table_configures_them():
    options = configure(["grpo"], ["grpo.normalize=none"])
    credit = compute(step_table(worked_example()), estimators=options)
    assert credit["grpo_advantage"][0].as_py() == pytest.approx(6.7)


def test_what_is_missing_is_named():
    table = step_table(worked_example())
    with pytest.raises(SchemaError, match="the table must have the column 'cost'"):
        compute(table.drop_columns(["cost"]), estimators=["grpo"])
    with pytest.raises(OptionError, match="no estimator is called 'nope'"):
        compute(table, estimators=["nope"])
    with pytest.raises(InputError, match="give er_graph"):
        compute(table, estimators=["sapo"])
