"""Names of estimator columns are read from the columns themselves."""

import pytest

from graphcredit.store.schema import split_estimator_column


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("grpo_advantage", ("grpo", "advantage")),
        ("grpo_step_advantage", ("grpo", "step_advantage")),
        ("grpo_episode_advantage", ("grpo", "episode_advantage")),
        ("my_own_step_reward", ("my_own", "step_reward")),
        ("advantage", None),
        ("_advantage", None),
        ("goal_distance", None),
    ],
)
def test_a_column_belongs_to_an_estimator_by_its_ending(
    name: str, expected: tuple[str, str] | None
):
    assert split_estimator_column(name) == expected
