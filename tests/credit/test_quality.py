"""Agreement of credit with the truth, by hand."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.credit.audit.agreement import Agreement, agreements, mean_agreement
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from graphcredit.store.sql.catalog import connect
from tests.worlds import trajectory, write_store

COLUMN = "grpo_advantage"


def _world(root: Path, *advantages: Sequence[float]) -> Store:
    """Write a group for each list: x (won: 3 → 2 → 2 → 0) and y (failed: 3 → 2 → 4)."""
    rows = []
    for number in range(len(advantages)):
        names = {"task_id": f"t{number}"}
        x = trajectory(f"x{number}", "A a B b B c won", rewards=[0, 0, 1], success=True, **names)
        y = trajectory(f"y{number}", "A a B d D", **names)
        for row, before, after in zip([*x, *y], [3, 2, 2, 3, 2], [2, 2, 0, 2, 4], strict=True):
            row |= {"oracle_distance": before, "next_oracle_distance": after}
        rows += [*x, *y]
    store = write_store(root, rows)
    _give(store, [value for values in advantages for value in values])
    return store


def _give(store: Store, advantages: Sequence[float | None]) -> None:
    """Credit a store with advantages of our choosing, in the order of its steps."""
    assign_credit(store, CreditSettings(estimators=configure(["grpo"])))
    path = store.shards()[0].credit_path
    table = pq.ParquetFile(path).read()
    column = pa.array(advantages, pa.float32())
    index = table.schema.get_field_index(COLUMN)
    pq.write_table(table.set_column(index, COLUMN, column), path)


def _only(store: Store) -> Agreement:
    with connect(store) as connection:
        (found,) = agreements(connection, COLUMN)
    return found


def test_spearman_with_ties_over_all_and_over_failed_steps(tmp_path: Path):
    # Progress x: 1, 0, 2; y: 1, -2. Ranks: 3.5, 2, 5, 3.5, 1.
    # Credit:  10, 20, 30, 40, 5. Ranks: 2, 3, 4, 5, 1.
    found = _only(_world(tmp_path / "s", [10, 20, 30, 40, 5]))
    assert (found.run_id, found.iteration, found.task_id) == ("r0", 0, "t0")
    assert (found.num_steps, found.num_failed_steps) == (5, 2)
    # Covariance 0.5·(-1) + (-1)·0 + 2·1 + 0.5·2 + (-2)·(-2) = 6.5; squares 9.5 and 10.
    assert found.over_all == pytest.approx(6.5 / (9.5 * 10) ** 0.5)
    assert found.over_failed == pytest.approx(1.0)


def test_the_sign_of_no_credit_and_of_no_progress(tmp_path: Path):
    # Progress 1, 0, 2, 1, -2: the second step is not asked. Right: 30 for 2, and -5 for -2.
    found = _only(_world(tmp_path / "s", [0, 20, 30, -40, -5]))
    assert found.sign_agreement == pytest.approx(2 / 4)
    assert found.silent_share == pytest.approx(1 / 5)


def test_credit_that_does_not_vary_ranks_nothing(tmp_path: Path):
    # Ranks of progress 3.5, 2, 5, 3.5, 1; of credit 1.5, 1.5, 3, 4.5, 4.5: alike in failures.
    found = _only(_world(tmp_path / "s", [1, 1, 2, 3, 3]))
    assert found.over_all == pytest.approx(-1.5 / (9.5 * 9) ** 0.5)
    assert found.over_failed == 0
    found = _only(_world(tmp_path / "t", [0, 0, 0, 0, 0]))
    assert (found.over_all, found.over_failed) == (0, 0)
    assert (found.sign_agreement, found.silent_share) == (0, 1)


def test_progress_that_does_not_vary_judges_nothing(tmp_path: Path):
    steps = trajectory("x", "A a B b won", rewards=[0, 1], success=True)
    for row, before, after in zip(steps, [2, 1], [1, 0], strict=True):
        row |= {"oracle_distance": before, "next_oracle_distance": after}
    store = write_store(tmp_path / "s", steps)
    _give(store, [1, 2])
    found = _only(store)
    assert (found.over_all, found.over_failed, found.num_failed_steps) == (None, None, 0)
    assert found.sign_agreement == 1


def test_groups_are_judged_by_themselves_and_each_counts_once(tmp_path: Path):
    # Within each group the credit of failures rises with progress; pooled, it would not.
    store = _world(tmp_path / "s", [0, 0, 0, 2, 1], [0, 0, 0, 12, 11], [0, 0, 0, 5, 5])
    with connect(store) as connection:
        assert [found.over_failed for found in agreements(connection, COLUMN)] == [1, 1, 0]
        mean = mean_agreement(connection, COLUMN)
    assert mean.over_failed == pytest.approx(2 / 3)
    assert mean.silent_share == pytest.approx(3 / 5)
    assert (mean.num_groups, mean.num_ranked, mean.num_ranked_failed) == (3, 3, 3)


def test_what_is_not_judged(tmp_path: Path):
    """A step without a distance, of an incomplete trajectory, or without credit."""
    x = trajectory("x", "A a B b C c D", task_id="t0")
    y = trajectory("y", "A a B", success=None, task_id="t0")
    for row in (*x, *y):
        row |= {"oracle_distance": 2, "next_oracle_distance": 1}
    x[1] |= {"next_oracle_distance": 3}
    x[2] |= {"oracle_distance": 3, "next_oracle_distance": None}
    store = write_store(tmp_path / "s", [*x, *y])
    _give(store, [1, -1, 5, 7])
    found = _only(store)
    assert (found.num_steps, found.num_failed_steps, found.over_all) == (2, 2, 1)
    _give(store, [None, -1, 5, 7])
    assert _only(store).num_steps == 1
    _give(store, [None, None, 5, 7])
    with connect(store) as connection:
        assert agreements(connection, COLUMN) == []
        mean = mean_agreement(connection, COLUMN)
    assert (mean.num_groups, mean.over_all, mean.silent_share) == (0, None, None)
