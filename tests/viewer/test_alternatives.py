"""What others did in the same state: one action with two outcomes, and the difference in text."""

from typing import Any

import pytest

from graphcredit.store import Store
from graphcredit.viewer.queries.trajectory import outcomes_here
from graphcredit.viewer.steps.alternatives import difference, label_of, summary
from tests.viewer.browser import boxes, open_page
from tests.viewer.stores import credited
from tests.worlds import trajectory

SHUT, OPEN, LOST = "a hall, the gate is shut", "a hall, the gate is open", "a cellar"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Push at the hall opens the gate for x and y, not for z; w goes down instead."""
    rows = [
        *trajectory("w", ["hall", "down", LOST]),
        *trajectory("x", ["hall", "push", OPEN, "go", "won"], rewards=[0, 1], success=True),
        *trajectory("y", ["hall", "push", OPEN, "stay", OPEN]),
        *trajectory("z", ["hall", "push", SHUT, "push", SHUT]),
    ]
    return credited(tmp_path_factory.mktemp("others") / "s", rows)


def outcomes(store: Store, state_id: int) -> list[dict[str, Any]]:
    where = {"run_id": "r0", "iteration": 0, "task_id": "t0", "state_id": state_id}
    return outcomes_here(store, **where, estimator="graphgpo").to_pylist()


def test_one_action_with_several_outcomes_is_named(store: Store):
    found = outcomes(store, 0)
    told = {(r["action"], r["next_state"]): (r["num_steps"], r["num_succeeded"]) for r in found}
    assert told == {("push", OPEN): (2, 1), ("push", SHUT): (1, 0), ("down", LOST): (1, 0)}
    first, several, rank = summary(found, "push")
    assert (
        first
        == "4 rollouts did 4 steps from this state: 2 different actions, which led to 3 different "
        "states."
    )
    assert several.startswith("This step's action led to 2 different states from here:")
    assert rank == (
        "By mean advantage, this step's action is number 1 of the 2 that the group took here."
    )
    assert len(summary(found, "down")) == 2


def test_a_state_left_once_has_no_others(store: Store):
    (shut,) = (row for row in outcomes(store, 0) if row["next_state"] == SHUT)
    found = outcomes(store, shut["next_state_id"])
    assert summary(found, "push") == ["No other step of the group starts from this state."]


def test_an_outcome_is_told_with_what_became_of_it(store: Store):
    row = next(row for row in outcomes(store, 0) if row["next_state"] == OPEN)
    assert label_of(row | {"advantage": -0.25}, is_here=True) == (
        f"▶ `push` → state {row['next_state_id']}: 2 rollouts in 2 steps, 1 succeeded, mean -0.25"
    )
    (opened,) = (row for row in outcomes(store, row["next_state_id"]) if row["is_goal"])
    assert label_of(opened | {"advantage": None}, is_here=False) == (
        "`go` → the goal: 1 rollout in 1 step, 1 succeeded"
    )


def test_the_difference_of_two_outcomes_is_told_by_words():
    assert difference(SHUT, OPEN) == "  a hall, the gate is \n- shut\n+ open"
    assert difference(OPEN, OPEN) == "The text of the outcome is the same."
    assert difference("a b", "a  b") == "- a \n+ a  \n  b"
    assert difference(None, OPEN) == f"+ {OPEN}"


def test_the_page_shows_them_at_the_step(store: Store):
    app = open_page(store, "trajectory", task="t0", trajectory="z", step=0)
    labels = [found.label for found in app.expander if "succeeded" in found.label]
    assert len(labels) == 3
    assert labels[0].startswith("▶ `push` → state ")
    texts = [boxes(found)[0] for found in app.expander if "succeeded" in found.label]
    assert texts[0] == SHUT
    assert "  a hall, the gate is \n- shut\n+ open" in texts[1:]
