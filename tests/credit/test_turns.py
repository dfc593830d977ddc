"""The estimators of turns: examples worked out by hand, and what they expect of a policy."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcredit.credit.estimators.table import estimator_named
from graphcredit.credit.iteration.in_memory import compute as credit_of
from graphcredit.store.errors import CreditWarning, InputError
from tests.credit.test_estimators import compute
from tests.credit.turn_worlds import Option, World, all_groups, expected_gradient, true_gradient
from tests.examples import examples
from tests.worlds import step_table, trajectory


def scored(name: str, path: str, scores: list[float | None], **more: Any) -> list[dict[str, Any]]:
    """Return a trajectory whose states are judged so."""
    steps = trajectory(name, path, task_id="t", **more)
    return [step | {"score": score} for step, score in zip(steps, scores, strict=True)]


def credit(rows: list[dict[str, Any]], name: str, **options: Any) -> list[float]:
    """Return the advantages in the order of the rows."""
    found = compute(rows, estimator_named(name), options)
    return [found[r["task_id"], r["trajectory_id"], r["step_index"]] for r in rows]


def test_turn_credit_by_hand():
    # x gains 1 at its last turn; shares 1, 1/2 and 1/4 of 7/4 go back: 4/7, 2/7, 1/7, mean 1/3.
    # y returns 1 and gains nothing. Both come to 1 in all, so the level is 0.
    rows = scored("x", "A a B b C c D", [0.0, None, 1.0])
    rows += scored("y", "A a B b C", [None, 5.0], rewards=[0.0, 1.0])
    expected = [-4 / 21, -1 / 21, 5 / 21, 0.0, 0.0]
    assert credit(rows, "turn_credit", gamma=0.5) == pytest.approx(expected)
    assert credit(rows, "turn_credit", gamma=0.5, beta=0.0) == pytest.approx([0.0] * 5)
    # All to the turn that made it: 0, 0, 1, mean 1/3.
    assert credit(rows, "turn_credit", gamma=0.0)[:3] == pytest.approx([-1 / 3, -1 / 3, 2 / 3])


def test_turn_rloo_by_hand():
    # To go: x 3, 2; y 1; z 0, 0, 4. From turn 1 on y earns 0, and from turn 2 on x does, too.
    rows = trajectory("x", "A a B b C", rewards=[1.0, 2.0], task_id="t")
    rows += trajectory("y", "A a B", rewards=[1.0], task_id="t")
    rows += trajectory("z", "A a B b C c D", rewards=[-4.0, 0.0, 4.0], task_id="t")
    expected = [3 - 0.5, 2 - 2.0, 1 - 1.5, 0 - 2.0, 4 - 1.0, 4 - 0.0]
    assert credit(rows, "turn_rloo") == pytest.approx(expected)


@st.composite
def worlds(draw: st.DrawFn, depth: int = 3) -> World:
    """Draw a tree of at most three decisions in a row, with ends at every one."""
    first = draw(st.integers(1, 9)) / 10
    return tuple(
        Option(
            chance=chance,
            reward=draw(st.integers(-4, 4)) / 4,
            then=draw(worlds(depth - 1)) if depth > 1 and draw(st.booleans()) else (),
        )
        for chance in (first, 1 - first)
    )


@settings(max_examples=examples(20))
@given(world=worlds(), size=st.integers(2, 3))
def test_turn_rloo_expects_the_gradient_of_the_return(world: World, size: int):
    groups = all_groups(world, size)
    found = compute(groups.rows, estimator_named("turn_rloo"), {})
    expected = {key: size * value for key, value in true_gradient(world).items()}
    assert expected_gradient(world, groups, found) == pytest.approx(expected, abs=1e-9)


def test_a_log_without_scores_has_turn_credit_of_returns_and_is_told():
    rows = trajectory("x", "A a B b C", rewards=[0.0, 1.0], task_id="t", success=True)
    rows += trajectory("y", "A a B b C", task_id="t")
    table = step_table(rows).drop_columns(["score"])
    with pytest.warns(CreditWarning, match="1 of 1 group has no step with a score: turn_credit is"):
        found = credit_of(table, estimators="turn_credit")
    assert found["turn_credit_advantage"].to_pylist() == [0.5, 0.5, -0.5, -0.5]
    rows[0]["score"] = 0.5
    with pytest.warns(CreditWarning, match="1 of 1 group has rollouts without any score"):
        credit_of(step_table(rows), estimators="turn_credit")


def test_a_score_that_is_no_number_is_refused():
    table = step_table(trajectory("x", "A a B b C", task_id="t"))
    broken = pa.array([float("nan"), None])
    table = table.set_column(table.schema.get_field_index("score"), "score", broken)
    with pytest.raises(InputError, match=r"score must be a number .* 1 of 2 steps have others"):
        credit_of(table, estimators="turn_credit")
