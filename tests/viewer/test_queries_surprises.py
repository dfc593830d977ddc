"""Credit in failures and blame in successes, against rows worked out from the views."""

from typing import Any

import pytest

from graphcredit.store import Store
from graphcredit.store.sql.catalog import run_trusted_query
from graphcredit.viewer.queries.trajectories import against_outcome
from tests.viewer.stores import credited
from tests.worlds import trajectory, worked_example


def surprises(store: Store, **options: Any) -> list[dict[str, Any]]:
    asked: dict[str, Any] = {"estimator": "graphgpo", "success": False, "num_rows": 9} | options
    return against_outcome(store, run_id="r0", iteration=0, **asked).to_pylist()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    # Two failures go to C, from which there is a way to the goal, and then take another one; x wins
    # by a detour where two others go straight.
    rows = worked_example()
    for number in range(2):
        rows += trajectory(f"lost{number}", "A a B b A c C e D")
        rows += trajectory(f"won{number}", "A c C d won", rewards=[0, 10], success=True)
    return credited(tmp_path_factory.mktemp("surprises") / "s", rows, names=("graphgpo", "grpo"))


@pytest.mark.parametrize("success", [False, True])
def test_each_trajectory_is_told_by_its_most_surprising_step(store: Store, success: bool):
    sign, order = ("<", "ASC") if success else (">", "DESC")
    sql = f"""
        SELECT task_id, trajectory_id, step_index, action, graphgpo_advantage::DOUBLE AS advantage,
            goal_distance, next_goal_distance, oracle_distance, next_oracle_distance
        FROM enriched JOIN trajectories USING (task_id, trajectory_id)
        WHERE trajectories.success = {success} AND graphgpo_advantage {sign} 0
        QUALIFY row_number() OVER (
            PARTITION BY trajectory_id ORDER BY advantage {order}, step_index
        ) = 1
        ORDER BY advantage {order}, trajectory_id
    """
    expected = run_trusted_query(store, sql).table.to_pylist()
    assert expected
    # Only x did a step from B.
    assert all((row["trajectory_id"], row["step_index"]) != ("x", 1) for row in expected)
    assert surprises(store, success=success) == expected
    assert surprises(store, success=success, num_rows=1) == expected[:1]


def test_trajectory_level_credit_never_goes_against_the_outcome(store: Store):
    assert surprises(store, estimator="grpo") == []
    assert surprises(store, estimator="grpo", success=True) == []
