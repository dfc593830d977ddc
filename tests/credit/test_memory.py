"""Credit without a store: the same numbers, from a table in memory."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.credit.estimators import table as table_module
from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.table import ESTIMATORS, Estimator, configure
from graphcredit.credit.inputs.table import ANALOGIES, Input
from graphcredit.credit.iteration.in_memory import compute
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit as assign
from graphcredit.credit.steps.arrays import Floats
from graphcredit.store.errors import CreditWarning, InputError, OptionError, SchemaError
from graphcredit.store.parquet.er_graph import ENTITY_SCHEMA, RELATION_SCHEMA, ErGraph
from tests.worlds import step_table, trajectory, worked_example, write_store

ALL = [row.name for row in ESTIMATORS if row.name != "sapo"]


def test_memory_and_store_give_the_same(tmp_path: Path):
    first = _listed([*worked_example(), *trajectory("dead", "A a B", success=None)])
    second = _listed([*trajectory("v", "A a B b D"), *trajectory("w", "A c C d won", success=True)])
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
    with pytest.warns(CreditWarning, match="no step with a score"):
        credit = compute(pa.concat_tables(parts), estimators=ALL, on_incomplete="ignore")
    assert credit.slice(len(second)).to_pylist() == expected[0].to_pylist()
    assert credit.slice(0, len(second)).to_pylist() == expected[1].to_pylist()


def test_rows_without_credit_are_counted_by_reason():
    rows = worked_example()
    rows[0]["reward"] = None
    with pytest.warns(CreditWarning) as said:
        credit = compute(_nullable(rows), estimators=["grpo"])
    assert credit["grpo_advantage"].is_null().to_pylist() == [True] * 4 + [False] * 4
    (message,) = [str(warning.message) for warning in said]
    first, why, example, _ = message.splitlines()
    assert first == "4 of 8 rows have no credit: 1 of 3 rollouts is not complete"
    assert why.split() == ["1", "a", "value", "is", "null"]
    assert example.startswith("for example 'x' of task 't0', step ")
    assert said[0].filename == __file__


def test_each_reason_is_counted_over_all_iterations():
    open_ = {"terminated": False, "truncated": False}
    ends = (open_, {"next_state": None}, {"next_state": None})
    rows = worked_example()
    for last, change in zip((3, 5, 7), ends, strict=True):
        rows[last] |= change
    table = _nullable(rows).append_column("iteration", pa.array([0] * 4 + [1] * 4))
    with pytest.warns(CreditWarning, match="8 of 8 rows have no credit: 3 of 3 rollouts") as said:
        credit = compute(table, estimators=["grpo"])
    assert credit["grpo_advantage"].null_count == 8
    lines = [" ".join(line.split()) for line in str(said[0].message).splitlines()]
    assert {"1 the last step has no end", "2 a value is null"} <= set(lines)


def test_incomplete_trajectories_are_an_error_or_nothing_where_that_is_asked_for():
    rows = worked_example()
    rows[0]["next_state"] += " "
    table = step_table(rows)
    with pytest.raises(InputError, match="4 of 8 rows have no credit"):
        compute(table, estimators=["grpo"], on_incomplete="raise")
    assert compute(table, estimators=["grpo"], on_incomplete="ignore").num_rows == 8
    whole = step_table(worked_example())
    assert compute(whole, estimators=["grpo"], on_incomplete="raise")["grpo_advantage"][0].is_valid
    with pytest.raises(OptionError, match="on_incomplete must be one of warn, raise, ignore"):
        compute(whole, estimators=["grpo"], on_incomplete="drop")  # pyright: ignore[reportArgumentType]


def test_groups_that_an_estimator_lacks_something_for_are_named():
    table = step_table(worked_example())
    menu = [row | {"admissible_actions": ["a", "b", "c"]} for row in worked_example()]
    with pytest.warns(CreditWarning, match="1 of 1 group has the same list of admissible actions"):
        compute(step_table(menu), estimators=["reach"])
    nothing = ErGraph(entities=ENTITY_SCHEMA.empty_table(), relations=RELATION_SCHEMA.empty_table())
    with pytest.warns(CreditWarning, match=r"1 of 1 group has no entities in er_graph/"):
        compute(table, estimators=["sapo"], er_graph=nothing)


def test_what_an_estimator_lacks_is_said_once_whatever_the_counts():
    """Two groups, then one; rows without credit are said each time."""
    menu = [row | {"admissible_actions": ["a", "b", "c"]} for row in worked_example()]
    more = [row | {"task_id": "t1", "trajectory_id": f"t1-{row['trajectory_id']}"} for row in menu]
    with pytest.warns(CreditWarning, match="2 of 2 groups have the same list"):
        compute(step_table([*menu, *more]), estimators=["reach"])
    menu[0] |= {"next_state": "elsewhere"}
    for _ in range(2):
        with pytest.warns(CreditWarning) as said:
            compute(step_table(menu), estimators=["reach"])
        (message,) = [str(warning.message) for warning in said]
        assert message.startswith("4 of 8 rows have no credit")


@pytest.mark.parametrize("penalty", [-5.0, float("nan"), float("inf")])
def test_a_penalty_that_the_stage_refuses_is_refused(penalty: float):
    with pytest.raises(
        OptionError, match=r"invalid_action_penalty must be (at least 0|a finite number): got"
    ):
        compute(step_table(worked_example()), estimators=["grpo"], invalid_action_penalty=penalty)


def test_names_may_be_one_text_with_commas():
    steps = step_table(worked_example())
    assert compute(steps, estimators="grpo,rloo") == compute(steps, estimators=["grpo", "rloo"])


def test_no_estimator_is_refused():
    for nothing in ([], {}):
        with pytest.raises(OptionError, match="name at least one estimator"):
            compute(step_table(worked_example()), estimators=nothing)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Made:
    """An estimator of a plugin: the letters of what it reads, and 100 where it has analogies."""

    def assign(self, batch: StepBatch) -> dict[str, Floats]:
        letters = np.zeros(batch.num_steps)
        for values in batch.columns.values():
            letters += [len(value or "") for value in values.to_pylist()]
        return {"advantage": letters + 100.0 * ("analogies" in batch.inputs)}


def _made(monkeypatch: pytest.MonkeyPatch, *reads: str, inputs: tuple[Input, ...] = ()) -> None:
    row = Estimator(
        name="made", options=_Made, writes=("advantage",), reads=reads, inputs=inputs, paper="none"
    )
    monkeypatch.setattr(table_module, "ESTIMATORS", (*ESTIMATORS, row))


def test_a_row_that_reads_no_column_of_steps_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    _made(monkeypatch, "nonsense")
    message = "an estimator may read columns of steps: made reads 'nonsense'"
    with pytest.raises(OptionError, match=message):
        configure(["made"])
    with pytest.raises(OptionError, match=message):
        compute(step_table(worked_example()), estimators={"made": _Made()})
    store = write_store(tmp_path / "s", worked_example())
    with pytest.raises(OptionError, match=message):
        assign(store, CreditSettings(estimators={"made": _Made()}))
    assert not list(store.root.glob("credit/**/*.parquet"))


@pytest.mark.parametrize(
    ("reads", "inputs"),
    [
        (("observation",), ()),
        (("observation", "thought"), ()),
        (("state",), (ANALOGIES,)),
        ((), (ANALOGIES,)),
        ((), ()),
    ],
)
@pytest.mark.parametrize("batch_rows", [1, 100_000])
def test_a_row_gets_the_columns_and_inputs_it_names_with_and_without_a_store(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reads: tuple[str, ...],
    inputs: tuple[Input, ...],
    batch_rows: int,
):
    _made(monkeypatch, *reads, inputs=inputs)
    listed = _listed([*worked_example("t0"), *worked_example("t1")])
    rows = [
        row | {"observation": "o" * number, "thought": None if number % 2 else "thinks"}
        for number, row in enumerate(listed)
    ]
    expected = [sum(len(row[name] or "") for name in reads) + 100.0 * bool(inputs) for row in rows]
    credit = compute(step_table(rows), estimators=["made"])
    assert credit["made_advantage"].to_pylist() == expected
    shuffled = compute(step_table(rows[::-1]), estimators=["made"])
    assert shuffled["made_advantage"].to_pylist() == expected[::-1]
    store = write_store(tmp_path / "s", rows)
    assign(store, CreditSettings(estimators=configure(["made"]), batch_rows=batch_rows))
    (shard,) = store.shards()
    written = pq.ParquetFile(shard.credit_path).read()
    assert written["made_advantage"].equals(credit["made_advantage"])


def _listed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return steps with lists of admissible actions that tell their states apart."""
    return [row | {"admissible_actions": ["a", f"open {row['state']}"]} for row in rows]


def _nullable(rows: list[dict[str, Any]]) -> pa.Table:
    """Return steps as another program holds them: any value may be null."""
    fields = [field.with_nullable(True) for field in step_table([]).schema]
    defaults = step_table(rows[:1]).to_pylist()[0] | {"success": None}
    defaults |= {"terminated": False, "truncated": False, "reward": 0.0}
    return pa.Table.from_pylist([defaults | row for row in rows], schema=pa.schema(fields))


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
