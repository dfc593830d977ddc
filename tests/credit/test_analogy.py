"""Analogy: worked by hand, and what nothing, everything and too much of it come to."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from graphcredit.credit import compute
from graphcredit.credit.estimators.analogy import Analogy
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.inputs.analogies import jaccard
from graphcredit.credit.inputs.analogies.action_lists import MEANING, Worth
from graphcredit.credit.inputs.table import INPUT_NAMED
from graphcredit.credit.iteration.assemble import assemble
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from graphcredit.store.errors import CreditWarning, InputError, OptionError
from tests.credit.strategies import logs
from tests.examples import examples
from tests.worlds import START, step_table, trajectory, worked_example, write_store

KITCHEN, CARROT, HALL = "a kitchen", "a kitchen carrot", "the hall"
POSSIBLE = {
    KITCHEN: ["east", "take", "look"],
    CARROT: ["east", "drop", "look"],
    HALL: ["win"],
}


def example(*, success: bool = True, **columns: Any) -> list[dict[str, Any]]:
    """Return a win by the hall, and a failure that took the carrot and looked at it.

    KITCHEN and CARROT share 2 of 4 actions and 2 of 3 words: they are 1/3 alike.
    """
    to_hall = [KITCHEN, "east", HALL, "win", "won"] if success else [KITCHEN, "east", HALL]
    rows = [
        *trajectory("x", to_hall, success=success, **columns),
        *trajectory("y", [KITCHEN, "take", CARROT, "look", CARROT], **columns),
    ]
    return [row | {"admissible_actions": POSSIBLE[row["state"]]} for row in rows]


def rewards(rows: list[dict[str, Any]], **options: Any) -> list[float]:
    batch = assemble(step_table(rows), inputs=[INPUT_NAMED["analogies"]]).batch
    return Analogy(**options).assign(batch)["step_reward"].tolist()


def distances(rows: list[dict[str, Any]], **options: Any) -> list[float]:
    batch = assemble(step_table(rows), inputs=[INPUT_NAMED["analogies"]]).batch
    assert batch.analogies is not None
    return Analogy(**options).distance(batch, batch.analogies).tolist()


def test_an_untried_action_leads_where_it_led_in_an_alike_state():
    # From CARROT, east is supposed to lead to HALL at 1 / (1/3); nodes KITCHEN, HALL, CARROT, goal.
    assert distances(example()) == pytest.approx([2, 1, 3 + 1, 0])


def test_the_credit_of_the_example():
    # Gains 1, 1, 2 - 4 (a step loses at most its cost), 0; mean 1/4.
    assert rewards(example()) == pytest.approx([1, 1, -1, 0])
    batch = assemble(step_table(example()), inputs=[INPUT_NAMED["analogies"]]).batch
    parts = Analogy().assign(batch)
    std = np.std([1, 1, -1, 0], ddof=1)
    expected = np.array([0.75, 0.75, -1.25, -0.25]) / std
    np.testing.assert_allclose(parts["advantage"], expected, atol=1e-5)
    assert parts["step_advantage"].tolist() == parts["advantage"].tolist()


def test_without_a_success_the_goal_lies_behind_what_nobody_tried():
    # New at KITCHEN: look, of which 1/3 is known from CARROT. New at CARROT: east, of which 1/3 is
    # known, and drop, of which nothing is. Nothing is known to be possible in HALL.
    from_carrot = 30 / (2 / 3 + 1)
    assert distances(example(success=False)) == pytest.approx(
        [1 + from_carrot, np.inf, from_carrot]
    )
    assert rewards(example(success=False)) == pytest.approx([-1, 1, 0])


def test_the_cost_of_searching_decides_between_a_walk_and_a_poor_place_to_search():
    # At 1.5 · C it is as well to search in KITCHEN itself.
    kitchen, _, carrot = distances(example(success=False), search_cost=0.1)
    assert (kitchen, carrot) == pytest.approx((0.1 / (2 / 3), 0.1 / (5 / 3)))


def test_costs_are_those_of_where_the_action_was_taken_and_credit_is_a_share_of_them():
    rows = example()
    rows[0]["cost"], rows[2]["cost"] = 2.0, 8.0
    assert distances(rows) == pytest.approx([3, 1, 2 * 3 + 1, 0])
    assert rewards(rows) == pytest.approx([1, 1, (3 - 7) / 8, 0])


EVERYTHING = sorted({action for actions in POSSIBLE.values() for action in actions})

WORTHLESS: dict[str, Callable[[int], list[str] | None]] = {
    "missing": lambda number: None,
    "constant": lambda number: EVERYTHING,
    "changing": lambda number: [*EVERYTHING, f"wait {number} minutes"],
}
"""Number of a step to a list that says nothing of its state, by what the report calls it."""


def relisted(rows: list[dict[str, Any]], worth: str) -> list[dict[str, Any]]:
    """Return the steps with worthless lists."""
    lists = map(WORTHLESS[worth], range(len(rows)))
    return [row | {"admissible_actions": own} for row, own in zip(rows, lists, strict=True)]


@pytest.mark.parametrize("worth", WORTHLESS)
def test_where_lists_say_nothing_of_states_the_graph_is_all_there_is(worth: str):
    rows = relisted(example(), worth)
    assert distances(rows) == [2, 1, np.inf, 0]
    assert rewards(rows) == [1, 1, -1, 0]
    assert rewards(relisted(example(success=False), worth)) == [0, 0, 0]


def test_a_group_of_one_state_has_nothing_to_search_for():
    """Its list is exact, and tells nothing apart: leaving the state is no loss."""
    rows = trajectory("x", "S pull S push T")
    rows = [row | {"admissible_actions": ["pull", "push", "wait"]} for row in rows]
    assert rewards(rows) == [0, 0]


@pytest.mark.parametrize("worth", WORTHLESS)
def test_each_group_is_judged_by_itself_and_the_report_says_so(tmp_path: Path, worth: str):
    sound = example(success=False)
    broken = relisted(example(success=False, task_id="t1"), worth)
    broken = [row | {"trajectory_id": f"t1-{row['trajectory_id']}"} for row in broken]
    store = write_store(tmp_path / "s", sound, broken)
    (report,) = assign_credit(store, CreditSettings(estimators=configure(["analogy"]))).values()
    assert report.action_lists == {"useful": 1, worth: 1}
    (notice,) = report.notices
    assert notice.startswith(f"1 of 2 groups has {MEANING[Worth[worth.upper()]]}: analogy imagines")
    credit = [row["analogy_step_reward"] for row in stored(store)]
    assert credit == pytest.approx([-1, 1, 0, 0, 0, 0])
    with pytest.warns(CreditWarning, match="1 of 2 groups has") as said:
        table = compute(step_table([*sound, *broken]), estimators=["analogy"])
    assert table["analogy_step_reward"].to_pylist() == credit
    assert [str(warning.message) for warning in said] == [notice]


def test_lists_on_some_steps_are_used_where_they_are(tmp_path: Path):
    rows = example(success=False)
    rows[1]["admissible_actions"] = None
    # y is at KITCHEN without a list, where x had one; CARROT has one.
    store = write_store(tmp_path / "s", rows)
    (report,) = assign_credit(store, CreditSettings(estimators=configure(["analogy"]))).values()
    assert report.action_lists == {"partial": 1}
    (notice,) = report.notices
    assert "actions on some steps only: analogy imagines nothing at the others" in notice
    assert [row["analogy_step_reward"] for row in stored(store)] == pytest.approx([-1, 1, 0])


def test_a_refused_action_tried_nothing():
    rows = example() + [
        row | {"admissible_actions": POSSIBLE[row["state"]]}
        for row in trajectory("z", [CARROT, "east", CARROT], invalid=(0,))
    ]
    assert distances(rows)[2] == pytest.approx(4)
    assert rewards(rows)[-1] == 0


def test_states_that_are_equally_alike_all_count():
    """`go` was taken in two states that are as alike the third: it may do what it did in either."""
    paths = {
        "x": ["room one", "go", "den", "win", "won"],
        "y": ["room two", "go", "pit"],
        "z": ["room three", "sit", "room three"],
    }
    rows = [
        row | {"admissible_actions": ["go", "sit"] if row["state"].startswith("room") else []}
        for name, path in paths.items()
        for row in trajectory(name, path, success=name == "x")
    ]
    # Alike 1/3 by one word of three, 1 by actions; den is at 1.
    assert distances(rows)[-2] == pytest.approx(3 + 1)


def test_what_was_possible_on_any_visit_is_possible():
    again = trajectory("z", [CARROT, "look", CARROT, "look", CARROT])
    waits = [
        row | {"admissible_actions": POSSIBLE[HALL]}
        for row in trajectory("w", [HALL, "wait", HALL, "wait", HALL])
    ]
    for possible in (None, ["drop"]):
        unlogged = [row | {"admissible_actions": possible} for row in again]
        # Lists of states: another visit has the same list 6 of 8 times, at CARROT 0, 1/2 and 1/2.
        rows = [*unlogged[:1], *example(), *waits, *unlogged[1:]]
        assert distances(rows)[2] == pytest.approx(4)


@settings(max_examples=examples(30), deadline=None)
@given(rows=logs())
def test_the_size_of_a_block_changes_nothing(rows: list[dict[str, Any]]):
    whole = rewards(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jaccard, "_BLOCK", 1)
        assert rewards(rows) == whole


@settings(max_examples=examples(60), deadline=None)
@given(rows=logs())
def test_a_step_gains_and_loses_at_most_its_cost(rows: list[dict[str, Any]]):
    assert all(-1 <= reward <= 1 for reward in rewards(rows))


@pytest.mark.parametrize(("cheap", "dear"), [(5e-324, 1e308), (1e-9, 1e9), (1e308, 1e308)])
def test_extreme_costs_give_finite_credit(cheap: float, dear: float):
    for success in (True, False):
        rows = example(success=success)
        for row, cost in zip(rows, (cheap, dear, dear, cheap), strict=False):
            row["cost"] = cost
        batch = assemble(step_table(rows), inputs=[INPUT_NAMED["analogies"]]).batch
        assert np.isfinite(Analogy().assign(batch)["advantage"]).all()


def test_a_batch_without_analogies_is_refused():
    with pytest.raises(InputError, match="assemble the batch with analogies"):
        Analogy().assign(assemble(step_table(example())).batch)


@pytest.mark.parametrize("value", ["0", "-1", "inf", "nan"])
def test_the_cost_of_searching_must_be_a_number_above_0(value: str):
    with pytest.raises(
        OptionError, match=r"analogy\.search_cost must be (above 0|a finite number): got"
    ):
        configure(["analogy"], [f"analogy.search_cost={value}"])


def credited(store: Store, iteration: int = 0, **options: Any) -> list[dict[str, Any]]:
    assign_credit(store, CreditSettings(estimators=configure(["analogy"]), **options))
    return stored(store, iteration)


def stored(store: Store, iteration: int = 0) -> list[dict[str, Any]]:
    tables = [pq.ParquetFile(shard.credit_path).read() for shard in store.shards(None, iteration)]
    return [row for table in tables for row in table.to_pylist()]


def test_the_stage_reads_what_the_estimator_needs(tmp_path: Path):
    store = write_store(tmp_path / "s", example(), worked_example("t1"))
    found = [row["analogy_step_reward"] for row in credited(store)]
    assert found[:4] == pytest.approx([1, 1, -1, 0])
    # Where nothing is admissible: d is A 2, B 3, C 1, D ∞, and no step leads nowhere but y's last.
    assert found[4:] == pytest.approx([-1, 1, 1, 1, 1, -1, 0, -1])


def test_the_size_of_a_batch_changes_nothing(tmp_path: Path):
    tasks = [
        [
            row | {"trajectory_id": f"t{n}-{row['trajectory_id']}"}
            for row in example(task_id=f"t{n}", success=n % 2 == 0)
        ]
        for n in range(4)
    ]
    store = write_store(tmp_path / "s", *tasks)
    assert credited(store) == credited(store, batch_rows=1)


def test_states_that_are_merged_are_one_state(tmp_path: Path):
    """With the carrot ignored, both states are one, and its actions are those of both."""
    store = write_store(tmp_path / "s", example())
    merge = MergeSettings(substitute=(" carrot=>",), guard=False)
    assert [row["analogy_step_reward"] for row in credited(store, merge=merge)] == [1, 1, 0, 0]


def test_a_window_lends_what_was_tried(tmp_path: Path):
    write_store(tmp_path / "s", example())
    dropped = trajectory("z", [CARROT, "drop", KITCHEN], logged_at=START)
    store = write_store(
        tmp_path / "s",
        [row | {"admissible_actions": POSSIBLE[CARROT]} for row in dropped],
        iteration=1,
    )
    # Alone, one state has a list: nothing tells it apart, and there is no signal.
    assert [row["analogy_step_reward"] for row in credited(store, 1)] == [0]
    assert [row["analogy_step_reward"] for row in credited(store, 1, graph_window=1)] == [1]
