"""Rows of steps have the store's columns: what an export has, import takes as it is."""

import json
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store, open_store
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import NothingToCreditError
from graphcredit.store.parquet.export import export_store
from graphcredit.store.schema import STEP_COLUMNS
from tests.collector.importers.logs import write_lines
from tests.collector.importers.read_back import brief, imported, steps_of
from tests.examples import examples
from tests.worlds import trajectory, worked_example, write_store

ROW = {"task_id": "t", "trajectory_id": "a", "state": "s0", "action": "long", "reward": 0.0}
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

_WORDS = st.text(max_size=4)
_NUMBERS = st.floats(-1e24, 1e24)
_LISTS = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=3)
_SINGLES = st.floats(-(2.0**100), 2.0**100, width=32)
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("reward", "score"), _NUMBERS),
    "cost": st.floats(1e-24, 1e24),
    **dict.fromkeys(("oracle_distance", "next_oracle_distance"), st.floats(0, 1e24)),
    "is_action_valid": st.booleans(),
    "admissible_actions": st.lists(_WORDS, max_size=2),
    **dict.fromkeys(("observation", "thought", "action", "policy_version", "worker_id"), _WORDS),
    **dict.fromkeys(("temperature", "top_p"), _SINGLES),
    "top_k": st.integers(-(2**31), 2**31 - 1),
    **dict.fromkeys(("prompt_ids", "response_ids"), _LISTS),
    "images": st.lists(
        st.fixed_dictionaries({"bytes": st.binary(max_size=3), "path": st.none()}), max_size=2
    ),
    "extra": st.dictionaries(_WORDS, st.integers()).map(json.dumps),
}


@st.composite
def _trajectories(draw: st.DrawFn) -> list[dict[str, Any]]:
    states = draw(st.lists(_WORDS, min_size=2, max_size=4))
    rows: list[dict[str, Any]] = []
    logged_at = NOON
    for index, (state, after) in enumerate(pairwise(states)):
        logged_at += timedelta(microseconds=draw(st.integers(0, 10**10)))
        row: dict[str, Any] = {"step_index": index, "state": state, "next_state": after}
        for column in STEP_COLUMNS:
            if column.name in _VALUES:
                values = _VALUES[column.name]
                row[column.name] = draw(st.none() | values if column.nullable else values)
        if row["response_ids"] is not None and draw(st.booleans()):
            row["response_logprobs"] = [draw(_SINGLES) for _ in row["response_ids"]]
        rows.append({**row, "logged_at": logged_at, "terminated": False, "truncated": False})
    if (end := draw(st.sampled_from(["", "terminated", "truncated"]))) != "":
        rows[-1] |= {end: True, "success": draw(st.booleans())}
    return rows


_GROUPS = st.lists(st.tuples(st.sampled_from(["t", "u"]), _trajectories()), min_size=1, max_size=3)
_PLACES = st.sampled_from([("r", 0), ("r", 1), ("s", 0)])


def _credited(store: Store) -> list[dict[str, Any]]:
    with suppress(NothingToCreditError):
        assign_credit(store, CreditSettings(estimators=configure(["graphgpo"])))
    tables = [pq.read_table(path) for path in sorted((store.root / "credit").rglob("*.parquet"))]
    rows = [row for table in tables for row in table.to_pylist()]
    return sorted(rows, key=lambda row: (row["trajectory_id"], row["step_index"], repr(row)))


@settings(max_examples=examples(40))
@given(iterations=st.dictionaries(_PLACES, _GROUPS, min_size=1, max_size=2))
def test_an_export_is_imported_as_the_steps_that_it_has(
    iterations: dict[tuple[str, int], list[tuple[str, list[dict[str, Any]]]]],
):
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for (run, iteration), group in iterations.items():
            rows = [
                {**row, "task_id": task, "trajectory_id": f"x{number}"}
                for number, (task, steps) in enumerate(group)
                for row in steps
            ]
            write_store(root / "a", rows, run_id=run, iteration=iteration)
        first = open_store(root / "a")
        credit = _credited(first)
        export_store(first, root / "out")
        assert imported(root / "out", root / "b").bad_rows == []
        second = open_store(root / "b")
        assert _sorted(steps_of(root / "b")) == _sorted(steps_of(root / "a"))
        assert _credited(second) == credit
        again = imported(root / "out", root / "b")
        assert again.num_already_there == sum(map(len, iterations.values()))


def _sorted(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


def test_a_log_has_columns_of_the_store_beside_its_own(tmp_path: Path):
    """Going the long way costs 9: with all costs at 1 its credit would be that of the short way."""
    more = {"oracle_distance": 3, "next_oracle_distance": 0.5, "mood": "fine", "worker_id": "w7"}
    rows = [
        {**ROW, "step_index": 0, "next_state": "s1", "cost": 9.0, **more}
        | {"policy_version": "v3", "logged_at": NOON.isoformat()},
        {**ROW, "step_index": 1, "state": "s1", "next_state": "s2", "success": True}
        | {"logged_at": "2026-03-01 12:00:01.5", "worker_id": "w7"},
        {**ROW, "trajectory_id": "b", "step_index": 0, "next_state": "s3", "success": False},
    ]
    imported(write_lines(tmp_path / "log.jsonl", *rows), tmp_path / "store")
    names = ("cost", "oracle_distance", "next_oracle_distance", "worker_id", "policy_version")
    assert brief(tmp_path / "store", *names) == [
        (9.0, 3.0, 0.5, "w7", "v3"),
        (1.0, None, None, "w7", None),
        (1.0, None, None, "import", None),
    ]
    times = [time for (time,) in brief(tmp_path / "store", "logged_at")]
    assert times[:2] == [NOON, NOON + timedelta(seconds=1.5)]
    assert times[2] > NOON
    extra = json.loads(brief(tmp_path / "store", "extra")[0][0])
    assert extra["message"] == {"mood": "fine", "policy_version": "v3"}
    assert check_store(open_store(tmp_path / "store")).errors == ()


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("cost", (0.0, 1.0), "`cost` of a rollout, as cost must be a number from 1e-24 to 1e+24"),
        ("logged_at", (NOON.isoformat(), None), "logged_at must be in all rows"),
        ("logged_at", (1.5, 2.5), "logged_at must be a time"),
        ("logged_at", (NOON.isoformat(), "2020-01-01"), "must not decrease"),
        ("oracle_distance", ("far", 1), "oracle_distance must be a number"),
    ],
)
def test_a_field_that_is_no_such_column_is_left_out_and_told(
    tmp_path: Path, name: str, values: tuple[Any, Any], said: str
):
    rows = [
        {**ROW, "step_index": n, "success": bool(n), "next_state": "s0", name: value}
        for n, value in enumerate(values)
    ]
    report = imported(write_lines(tmp_path / "log.jsonl", *rows), tmp_path / "store")
    assert report.num_trajectories == 1
    assert [said in reason for reason in report.left_out if name in reason] == [True]
    assert check_store(open_store(tmp_path / "store")).errors == ()


def test_an_option_decides_against_an_export(tmp_path: Path):
    store = write_store(tmp_path / "a", worked_example())
    export_store(store, tmp_path / "out")
    imported(tmp_path / "out", tmp_path / "b", success="reward>=100", state="window:2")
    rows = steps_of(tmp_path / "b")
    assert {row["success"] for row in rows} == {None, False}
    assert rows[1]["state"] != "B"
    assert rows[1]["cost"] == 1.0


def test_an_exported_row_that_breaks_a_rule_costs_its_trajectory(tmp_path: Path):
    store = write_store(tmp_path / "a", worked_example(), trajectory("bad", "A a B", cost=0.0))
    export_store(store, tmp_path / "out")
    report = imported(tmp_path / "out", tmp_path / "b")
    (bad,) = report.bad_rows
    assert "cost must be a number from 1e-24 to 1e+24: got 0.0" in bad.reason
    assert {name for (name,) in brief(tmp_path / "b", "trajectory_id")} == {"x", "y", "z"}


_DECLARED = """
import sys
from pathlib import Path
import pyarrow as pa
from graphcredit.store import schema
latency = schema.Column(
    name="latency_ms", type=pa.float64(), nullable=True, meaning="milliseconds until the answer",
    in_logs=("latency",), shown="latency {} ms",
)
schema.STEP_COLUMNS = (*schema.STEP_COLUMNS, latency)
schema.STEP_SCHEMA = schema.arrow_schema(schema.STEP_COLUMNS)
import graphcredit
from graphcredit.collector.importers.run import import_log
from graphcredit.store import open_store
from graphcredit.store.parquet.export import export_store
from graphcredit.store.sql.catalog import connect
from graphcredit.viewer.queries.trajectory import steps
from graphcredit.viewer.steps.facts import shown_values
from graphcredit.viewer.steps.html_export import trajectory_page
from tools.reference_pages import columns_page
folder = Path(sys.argv[1])
import_log(folder / "log.jsonl", folder / "store")
with graphcredit.StepRecorder(folder / "store", run_id="r", iteration=0, worker_id="w") as recorder:
    with recorder.trajectory(task_id="t", trajectory_id="c") as handle:
        handle.log(state="a", action="b", next_state="c", reward=0, latency_ms=7, terminated=True,
                   success=True)
store = open_store(folder / "store")
print(connect(store).sql("SELECT latency_ms FROM steps ORDER BY ALL").fetchall())
export_store(store, folder / "out.parquet")
import_log(folder / "out.parquet", folder / "again")
again = open_store(folder / "again")
print(connect(again).sql("SELECT latency_ms FROM steps ORDER BY ALL").fetchall())
table = steps(store, run_id="imported", iteration=0, trajectory_id="a")
print(shown_values(table.to_pylist()[0]))
print("latency 125 ms" in trajectory_page(table, title="r"), "latency_ms" in columns_page())
"""


def test_a_new_column_is_declared_in_one_place(tmp_path: Path):
    rows = [
        {**ROW, "step_index": 0, "next_state": "s1", "latency": 125},
        {**ROW, "step_index": 1, "state": "s1", "next_state": "s2", "success": True},
    ]
    write_lines(tmp_path / "log.jsonl", *rows)
    command = [sys.executable, "-c", _DECLARED, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True)
    values = "[(7.0,), (125.0,), (None,)]"
    assert ended.stdout.splitlines() == [
        *(values, values, "['reward 0', 'cost 1', 'latency 125 ms']", "True True")
    ], ended.stderr
