"""`compute` of the face: the kind that goes in comes out, and what a log lacks is filled in.

Two trajectories of one task, x: hall -east-> kitchen -take-> won with reward 1, y: hall -west->
nowhere. x and y differ by one in their episode and at the hall, so each part is ±1/√2, and the
kitchen, seen once, has the episode's part only.
"""

import random
from typing import Any

import datasets
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import graphcredit
from graphcredit.kinds import KINDS
from graphcredit.step_defaults import DEFAULTS, NEEDED, with_defaults
from graphcredit.store.errors import CreditWarning, InputError, SchemaError
from tests.worlds import step_table, worked_example

HALF = 2**-0.5
ADVANTAGES = [2 * HALF, HALF, -2 * HALF]

ROWS: list[dict[str, Any]] = [
    {"trajectory_id": "x", "state": "hall", "action": "east", "reward": 0.0, "success": True},
    {"trajectory_id": "x", "state": "kitchen", "action": "take", "reward": 1.0, "success": True},
    {"trajectory_id": "y", "state": "hall", "action": "west", "reward": 0.0, "success": False},
]
"""What a log must have; `success` on every row, and nothing that follows from the rest."""

FRAME = pl.DataFrame([{"task_id": "t0", "note": "of the user", **row} for row in ROWS])


def pandas_frame() -> pd.DataFrame:
    return pd.DataFrame(FRAME.to_dicts(), index=[7, 3, 5])


def relation() -> Any:
    connection = duckdb.connect()
    connection.register("steps", FRAME.to_arrow())
    return connection.sql("FROM steps")


TABLES = {
    "pyarrow.Table": FRAME.to_arrow,
    "polars.DataFrame": lambda: FRAME,
    "polars.LazyFrame": FRAME.lazy,
    "pandas.DataFrame": pandas_frame,
    "duckdb.DuckDBPyRelation": relation,
    "datasets.Dataset": lambda: datasets.Dataset(FRAME.to_arrow()),
    "builtins.list": FRAME.to_dicts,
}


def advantages(credit: Any) -> list[float]:
    if isinstance(credit, pl.LazyFrame):
        credit = credit.collect()
    if isinstance(credit, duckdb.DuckDBPyRelation):
        credit = credit.to_arrow_table()
    if isinstance(credit, list):
        credit = pl.DataFrame(credit)
    column = credit["gigpo_advantage"]
    return column.to_pylist() if isinstance(column, pa.ChunkedArray) else list(column)


def test_each_kind_is_tested():
    assert [f"{kind.library}.{kind.type}" for kind in KINDS] == list(TABLES)


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES.keys())
def test_the_kind_that_goes_in_comes_out(make: Any):
    steps = make()
    credit = graphcredit.compute(steps, estimators="gigpo")
    assert type(credit) is type(steps)
    assert advantages(credit) == pytest.approx(ADVANTAGES, rel=1e-4)


def test_a_pandas_frame_keeps_its_index():
    credit = graphcredit.compute(pandas_frame(), estimators="grpo")
    assert list(credit.index) == [7, 3, 5]
    joined = pandas_frame().join(credit)
    assert joined.loc[5, "action"] == "west"
    assert joined.loc[5, "grpo_advantage"] == pytest.approx(-HALF, rel=1e-4)


def test_a_relation_stays_in_its_connection():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE log AS SELECT * FROM (VALUES ('x', 0, 'first')) v(t, i, word)")
    connection.register("steps", FRAME.to_arrow())
    credit = graphcredit.compute(connection.sql("FROM steps"), estimators="gigpo,grpo")
    joined = credit.query(
        "credit", "SELECT word FROM credit JOIN log ON trajectory_id = t AND step_index = i"
    )
    assert joined.fetchall() == [("first",)]


def test_of_a_lazy_frame_only_what_is_needed_is_read():
    lazy = FRAME.lazy().with_columns(
        note=pl.col("note").map_elements(lambda _: 1 / 0, return_dtype=pl.Float64)
    )
    credit = graphcredit.compute(lazy, estimators="gigpo").collect()
    assert credit["gigpo_advantage"].to_list() == pytest.approx(ADVANTAGES, rel=1e-4)


def test_another_kind_of_table_is_refused():
    with pytest.raises(InputError, match="steps must be a table of one of these kinds: pyarrow"):
        graphcredit.compute(tuple(ROWS), estimators="grpo")


def test_a_pandas_column_of_two_types_is_named():
    frame = pandas_frame().astype({"state": object})
    frame.loc[3, "state"] = 4
    with pytest.raises(SchemaError, match=r"each column of the table must have one type.*state"):
        graphcredit.compute(frame, estimators="grpo")


def test_what_is_missing_is_named_with_its_meaning_and_what_was_found():
    with pytest.raises(SchemaError) as error:
        graphcredit.compute(FRAME.drop("reward", "success"), estimators="grpo")
    message = str(error.value)
    assert "found task_id, trajectory_id, state, action. Missing: reward (double): " in message
    assert "environment reward of this step" in message
    assert "success (bool): task accomplished" in message


def test_what_follows_from_the_rest_is_filled_in():
    full = pl.DataFrame(with_defaults(FRAME.to_arrow())).drop("note")
    assert set(full.columns) == {*NEEDED, *DEFAULTS}
    assert full.rows_by_key("trajectory_id", named=True)["x"] == [
        {"task_id": "t0", "state": "hall", "action": "east", "reward": 0.0, "success": None}
        | {"step_index": 0, "next_state": "kitchen", "is_action_valid": True, "cost": 1.0}
        | {"terminated": False, "truncated": False},
        {"task_id": "t0", "state": "kitchen", "action": "take", "reward": 1.0, "success": True}
        | {"step_index": 1, "next_state": "kitchen", "is_action_valid": True, "cost": 1.0}
        | {"terminated": True, "truncated": False},
    ]
    assert full["truncated"].to_list() == [False, False, True]


def test_the_step_index_orders_the_rows_where_it_is_given():
    shuffled = FRAME.with_columns(step_index=pl.Series([0, 1, 0]))[[1, 2, 0]]
    credit = graphcredit.compute(shuffled, estimators="gigpo")
    assert credit["gigpo_advantage"].to_list() == pytest.approx(
        [ADVANTAGES[i] for i in (1, 2, 0)], rel=1e-4
    )


def test_one_trajectory_id_in_two_iterations_is_two_trajectories():
    both = pl.concat([FRAME.with_columns(iteration=pl.lit(number)) for number in (0, 1)])
    credit = graphcredit.compute(both, estimators="gigpo")
    assert credit["step_index"].to_list() == [0, 1, 0] * 2
    assert credit["gigpo_advantage"].to_list() == pytest.approx(ADVANTAGES * 2, rel=1e-4)


@pytest.mark.parametrize("column", DEFAULTS)
def test_each_column_that_follows_may_be_missing_alone(column: str):
    whole = step_table(worked_example())
    # The worked example ends in states of their own; a default ends where the last step began.
    expected = graphcredit.compute(whole, estimators="rloo")["rloo_advantage"]
    assert graphcredit.compute(whole.drop_columns([column]), estimators="rloo")[
        "rloo_advantage"
    ].equals(expected)


def test_rows_in_any_order_keep_their_order():
    table = step_table(worked_example())
    order = list(range(8))
    random.Random(5).shuffle(order)
    straight = graphcredit.compute(table, estimators="graphgpo").to_pylist()
    mixed = graphcredit.compute(table.take(order), estimators="graphgpo").to_pylist()
    assert mixed == [straight[i] for i in order]


def test_a_warning_names_the_line_of_the_caller():
    without_end = FRAME.with_columns(success=pl.lit(None, pl.Boolean))
    with pytest.warns(CreditWarning, match="3 of 3 rows have no credit") as said:
        graphcredit.compute(without_end, estimators="grpo")
    assert said[0].filename == __file__
    with pytest.raises(InputError, match="the last step has no end"):
        graphcredit.compute(without_end, estimators="grpo", on_incomplete="raise")


def test_no_rows_give_no_rows():
    credit = graphcredit.compute(FRAME.clear(), estimators="grpo")
    assert credit.columns == ["trajectory_id", "step_index"]
    assert credit.height == 0


def test_a_score_is_no_verdict():
    steps = FRAME.with_columns(success=pl.Series([None, 0.9, 0.2]))
    with pytest.raises(SchemaError, match=r"row 1 \(from 0\) has 0.9.*`steps.success >= 1`"):
        graphcredit.compute(steps, estimators="grpo")


def test_a_failure_before_the_end_is_none():
    """gymnasium says of every step whether it ended, and whether it was a success."""
    steps = FRAME.with_columns(
        terminated=pl.Series([False, True, False]),
        truncated=pl.Series([False, False, True]),
        success=pl.Series([False, True, False]),
    )
    credit = graphcredit.compute(steps, estimators="gigpo", on_incomplete="raise")
    assert advantages(credit) == pytest.approx(ADVANTAGES, rel=1e-4)


def test_messages_about_rows_name_the_row_and_the_remedy():
    with pytest.raises(SchemaError, match=r"column 'reward'.* is in row 1 \(from 0\): 'x'"):
        graphcredit.compute(
            FRAME.with_columns(reward=pl.Series(["0", "x", "0"])), estimators="grpo"
        )
    unnamed = FRAME.with_columns(trajectory_id=pl.Series(["x", "x", None]))
    with pytest.raises(SchemaError, match=r"trajectory_id must not be null: it is in row 2"):
        graphcredit.compute(unnamed, estimators="grpo")
    nowhere = FRAME.with_columns(state=pl.Series(["hall", None, "hall"]))
    with pytest.raises(InputError, match=r"'x' of task 't0', step 1: .*\(state.*\. Remedy: fill"):
        graphcredit.compute(nowhere, estimators="grpo", on_incomplete="raise")
