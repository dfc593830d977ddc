"""Rank correlation with the truth, by hand."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.credit.quality import rank_correlation, step_shares
from graphcredit.credit.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.credit.table import configure
from graphcredit.store import Store
from graphcredit.store.catalog import connect
from tests.worlds import trajectory, write_store


def _world(root: Path, advantages: list[float]) -> Store:
    """Write x (won: 3 → 2 → 2 → 0) and y (failed: 3 → 2 → 4), with advantages of our choosing."""
    x = trajectory("x", "A a B b B c won", rewards=[0, 0, 1], success=True)
    y = trajectory("y", "A a B d D")
    for row, before, after in zip([*x, *y], [3, 2, 2, 3, 2], [2, 2, 0, 2, 4], strict=True):
        row |= {"oracle_distance": before, "next_oracle_distance": after}
    store = write_store(root, [*x, *y])
    assign_credit(store, CreditSettings(estimators=configure(["grpo"])))
    path = store.shards()[0].credit_path
    table = pq.ParquetFile(path).read()
    index = table.schema.get_field_index("grpo_advantage")
    column = pa.array(advantages, pa.float32())
    pq.write_table(table.set_column(index, "grpo_advantage", column), path)
    return store


def test_spearman_with_ties_over_all_and_over_failed_steps(tmp_path: Path):
    # Progress x: 1, 0, 2; y: 1, -2. Ranks: 3.5, 2, 5, 3.5, 1.
    # Credit:  10, 20, 30, 40, 5. Ranks: 2, 3, 4, 5, 1.
    store = _world(tmp_path / "s", [10, 20, 30, 40, 5])
    with connect(store) as connection:
        found = rank_correlation(connection, "grpo_advantage")
    # Covariance 0.5·(-1) + (-1)·0 + 2·1 + 0.5·2 + (-2)·(-2) = 6.5; squares 9.5 and 10.
    assert found.over_all == pytest.approx(6.5 / (9.5 * 10) ** 0.5)
    assert found.over_failed == pytest.approx(1.0)


def test_without_variation_there_is_no_correlation(tmp_path: Path):
    with connect(_world(tmp_path / "s", [1, 1, 1, 1, 1])) as connection:
        found = rank_correlation(connection, "grpo_advantage")
    assert (found.over_all, found.over_failed) == (None, None)


def test_progress_in_failures_and_idleness_in_successes(tmp_path: Path):
    with connect(_world(tmp_path / "s", [1, 2, 3, 4, 5])) as connection:
        shares = step_shares(connection)
    assert (shares.num_failed_steps, shares.num_failed_progress) == (2, 1)
    assert (shares.num_successful_steps, shares.num_successful_idle) == (3, 1)
