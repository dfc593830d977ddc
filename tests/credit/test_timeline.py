"""3SPO over several iterations: the past, and nothing but the past."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from graphcredit.store.errors import NothingToCreditError
from tests.credit import reference
from tests.credit.other_version import as_made_before
from tests.credit.strategies import logs
from tests.examples import examples
from tests.worlds import step_table, trajectory, worked_example, write_store

Rows = list[dict[str, Any]]


def _credit(
    store: Store,
    iteration: int | None = None,
    *options: str,
    rows: int = 1 << 17,
    merge: MergeSettings | None = None,
) -> None:
    wanted = CreditSettings(
        estimators=configure(["spo3"], options), merge=merge or MergeSettings(), batch_rows=rows
    )
    assign_credit(store, wanted, iteration=iteration)


def _advantages(store: Store) -> list[list[float | None]]:
    """Return the advantages of every iteration, in row order."""
    tables = [pq.ParquetFile(shard.credit_path).read() for shard in store.shards()]
    return [table["spo3_advantage"].to_pylist() for table in tables]


def _expected(iterations: list[Rows]) -> list[list[float | None]]:
    full = [step_table(rows).to_pylist() for rows in iterations]
    return [
        [found.get((r["task_id"], r["trajectory_id"], r["step_index"])) for r in rows]
        for rows, found in zip(full, reference.spo3(full), strict=True)
    ]


def _write(root: Path, iterations: list[Rows]) -> Store:
    for number, rows in enumerate(iterations):
        store = write_store(root, rows, iteration=number)
    return store


def _assert_same(found: list[list[float | None]], expected: list[list[float | None]]) -> None:
    for mine, theirs in zip(found, expected, strict=True):
        for one, other in zip(mine, theirs, strict=True):
            assert one == (other if other is None else pytest.approx(other, rel=1e-5, abs=1e-6))


def _credit_if_any(store: Store, iteration: int | None = None, **options: Any) -> None:
    """Credit, and leave examples out that have no complete trajectory to credit."""
    try:
        _credit(store, iteration, **options)
    except NothingToCreditError:
        reject()


@st.composite
def runs(draw: st.DrawFn) -> list[Rows]:
    """Draw iterations in which some trajectories see all texts in capitals."""
    iterations = draw(st.lists(logs(), min_size=1, max_size=3))
    names = sorted({row["trajectory_id"] for rows in iterations for row in rows})
    loud = draw(st.sets(st.sampled_from(names)))
    return [
        [_shouted(row) if row["trajectory_id"] in loud else row for row in i] for i in iterations
    ]


def _shouted(row: dict[str, Any]) -> dict[str, Any]:
    return row | {name: row[name].upper() for name in ("state", "next_state")}


def _folded(row: dict[str, Any]) -> dict[str, Any]:
    return row | {name: row[name].casefold() for name in ("state", "next_state")}


def _acted(iterations: list[Rows]) -> dict[tuple[str, str], tuple[int, int]]:
    """Return for each task and state how many trajectories took a step from it, and succeeded."""
    outcomes: dict[tuple[str, str], list[bool]] = {}
    for rows in iterations:
        for task, group in reference.groups_of(step_table(rows).to_pylist()).items():
            for name, steps in group.trajectories.items():
                for state in {step["state"] for step in steps}:
                    outcomes.setdefault((task, state), []).append(group.ok(name))
    return {state: (len(won), sum(won)) for state, won in outcomes.items()}


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    iterations=runs(),
    batch_rows=st.sampled_from([1, 1000]),
    merges=st.booleans(),
    is_incremental=st.booleans(),
)
def test_a_whole_run_agrees_with_the_reference(
    tmp_path_factory: pytest.TempPathFactory,
    iterations: list[Rows],
    batch_rows: int,
    merges: bool,
    is_incremental: bool,
):
    """Trajectories end at the same time, in states where others act, and with invalid steps."""
    merge = MergeSettings(normalise=("casefold",), guard=False) if merges else MergeSettings()
    root = tmp_path_factory.mktemp("run") / "s"
    for number, rows in enumerate(iterations):
        store = write_store(root, rows, iteration=number)
        if is_incremental:
            _credit_if_any(store, number, rows=batch_rows, merge=merge)
    if not is_incremental:
        _credit_if_any(store, rows=batch_rows, merge=merge)
    states = [[_folded(row) for row in rows] for rows in iterations] if merges else iterations
    _assert_same(_advantages(store), _expected(states))
    counts = pq.ParquetFile(store.history_path("r0")).read().to_pylist()
    found = {
        (row["task_id"], row["state"].casefold() if merges else row["state"]): (
            row["num_total"],
            row["num_success"],
        )
        for row in counts
    }
    assert found == _acted(states)
    assert len(found) == len(counts)


def _three_iterations() -> list[Rows]:
    return [
        [*worked_example("t0"), *worked_example("t1")],
        [*trajectory("v", "A a B b D"), *trajectory("w", "A c C d won", success=True)],
        worked_example("t0"),
    ]


def test_an_iteration_in_the_middle_sees_those_before_it_that_were_never_credited(tmp_path: Path):
    iterations = _three_iterations()
    store = _write(tmp_path / "s", iterations)
    _credit(store, 2)
    (credited,) = [s for s in store.shards() if s.credit_path.exists()]
    table = pq.ParquetFile(credited.credit_path).read()
    _assert_same([table["spo3_advantage"].to_pylist()], _expected(iterations)[2:])


LATE = trajectory("late", "A a B b D")
OTHERWISE = [
    *trajectory("v", "A a B b D", success=True),
    *trajectory("w", "A c C d won", success=False),
]


@pytest.mark.parametrize(
    ("number", "shards"), [(0, [_three_iterations()[0], LATE]), (1, [OTHERWISE])]
)
def test_an_old_iteration_of_other_steps_is_counted_anew(
    tmp_path: Path, number: int, shards: list[Rows]
):
    iterations = _three_iterations()
    store = _write(tmp_path / "s", iterations)
    _credit(store)
    write_store(store.root, *shards, iteration=number)
    _credit(store, 2)
    iterations[number] = [row for rows in shards for row in rows]
    (shard,) = store.shards(iteration=2)
    found = pq.ParquetFile(shard.credit_path).read()["spo3_advantage"].to_pylist()
    _assert_same([found], _expected(iterations)[2:])


def test_a_history_of_the_older_formula_is_counted_anew(tmp_path: Path):
    iterations = _three_iterations()
    store = _write(tmp_path / "s", iterations[:2])
    _credit(store)
    as_made_before(store)
    write_store(store.root, iterations[2], iteration=2)
    _credit(store, 2)
    (shard,) = store.shards(iteration=2)
    found = pq.ParquetFile(shard.credit_path).read()["spo3_advantage"].to_pylist()
    _assert_same([found], _expected(iterations)[2:])
    fresh = _write(tmp_path / "fresh", iterations)
    _credit(fresh)
    assert store.history_path("r0").read_bytes() == fresh.history_path("r0").read_bytes()


def test_the_counts_scores_and_rollouts_of_the_worked_example(tmp_path: Path):
    store = _write(tmp_path / "s", [worked_example()])
    _credit(store)
    rows = pq.ParquetFile(store.history_path("r0")).read().to_pylist()
    counts = {r["state"]: (r["num_total"], r["num_success"]) for r in rows}
    # z ends in B and y in D, where they no longer act; nobody acts at the goal.
    assert counts == {"A": (3, 1), "B": (1, 1), "C": (2, 1)}
    scores = {row["state"]: row["score"] for row in rows}
    # T = 4: S(A) = 4^(-1/3), S(B) = 4^(-1), S(C) = 4^(-1/2).
    assert scores["A"] == pytest.approx(4 ** (-1 / 3), rel=1e-5)
    assert scores["B"] == pytest.approx(0.25, rel=1e-5)
    assert scores["C"] == pytest.approx(0.5, rel=1e-5)
    assert {row["state"]: row["num_rollouts"] for row in rows} == {
        "A": 6,  # ⌈8 · 0.63⌉
        "B": 3,  # ⌈8 · 0.2500003⌉: p = 1 / (1 + 1e-6) is a little less than 1
        "C": 5,
    }
