"""Reach on worlds small enough to solve by hand, and with earlier iterations in its graph."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

from graphcredit.credit import compute
from graphcredit.credit.estimators.hidden_state import hidden_share
from graphcredit.credit.estimators.reach import Reach
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.inputs.analogies.action_lists import MEANING, Worth
from graphcredit.credit.inputs.table import ANALOGIES
from graphcredit.credit.iteration.assemble import Assembly, assemble
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from graphcredit.store.errors import CreditWarning, InputError
from tests.credit.reference import groups_of
from tests.credit.reference_reach import progress, reach
from tests.credit.strategies import logs
from tests.credit.untried_worlds import CARROT, EVERYTHING, KITCHEN, POSSIBLE, example
from tests.examples import examples
from tests.worlds import START, step_table, trajectory, write_store

Row = dict[str, Any]


def assembled(rows: list[Row]) -> Assembly:
    return assemble(step_table(rows), inputs=[ANALOGIES])


def parts(rows: list[Row], **options: Any) -> dict[str, list[float]]:
    """Return each part of the credit, in the order of the steps."""
    found = Reach(**options).assign(assembled(rows).batch)
    return {name: values.tolist() for name, values in found.items()}


def steps_of(rows: list[Row]) -> list[float]:
    """Return the progress of each step."""
    return parts(rows)["progress"]


def after(hidden: float) -> float:
    """Return what the next step counts, η being the share of what is hidden."""
    return (1 - hidden**2) * hidden ** (1 / 5) + hidden**2


def test_the_chances_around_a_fork():
    """κ = 1, H = 2. S is left three times, M twice, N once; M is won once.

    V_1(M) = 1/(2 + 1) = 1/3, V_1(N) = 0, V_2(S) = (1/3 + 1/3 + 0)/(3 + 1) = 1/6. a leads to M.
    Without one a, S has (1/3 + 0)/(2 + 1) = 1/9, without d 2/9; M has 0 without b, 1/2 without c.
    p = (1 + 1/2) / (3 + 1) = 3/8, so √(H / (p (1 - p))) = 8 √(2/15). Nothing is contradicted,
    and a agreed with itself once: η = 2/(4 + 1).
    """
    rows = [
        *trajectory("p", "S a M b won", success=True),
        *trajectory("q", "S a M c X"),
        *trajectory("r", "S d N c X"),
    ]
    found = parts(rows, doubt=1.0)
    gain = np.array([1 / 3 - 1 / 6, 1 - 1 / 3, 1 / 6, -1 / 3, -1 / 6, 0])
    assert found["step_reward"] == pytest.approx(gain)
    value, q = np.array([1 / 9, 0, 1 / 9, 1 / 2, 2 / 9, 0]), np.array([1 / 3, 1, 1 / 3, 0, 0, 0])
    assert found["value"] == pytest.approx(value)
    assert found["q"] == pytest.approx(q)
    weight = after(2 / 5)
    assert found["tail"] == pytest.approx([weight * 2 / 3, 0, -weight / 3, 0, 0, 0])
    # From S the goal is 2 steps away, by M; N and X lead nowhere.
    assert found["progress"] == [1, 1, 1, -1, -1, 0]
    credit = q - value
    credit[::2] += weight * gain[1::2]
    assert found["advantage"] == pytest.approx(credit * 8 * np.sqrt(2 / 15))
    assert parts(rows, doubt=1.0, normalize="none")["advantage"] == pytest.approx(credit)


@settings(max_examples=examples(60), deadline=None)
@given(rows=logs())
def test_the_advantage_is_q_less_value_plus_tail_times_one_number_for_each_group(rows: list[Row]):
    batch = assembled(rows).batch
    plain, scaled = Reach(normalize="none").assign(batch), Reach().assign(batch)
    total = plain["q"] - plain["value"] + plain["tail"]
    assert plain["advantage"] == pytest.approx(total, abs=1e-9)
    for name in ("q", "value", "tail"):
        assert (plain[name] == scaled[name]).all()
    for group in range(batch.num_groups):
        own = batch.group_of_step == group
        product = np.outer(scaled["advantage"][own], total[own])
        assert product == pytest.approx(product.T, abs=1e-9)
        assert np.trace(product) >= 0


def test_a_state_has_a_chance_and_a_share_of_it_in_doubt():
    """H = 2: without doubt V(M) = V(S) = 1/2. With κ = 1, V_2(M) = (1 + 0)/(1 + 1 + 1) = 1/3, and
    V_2(S) = 2 · 1/3 / (2 + 1) = 2/9. X was never left."""
    rows = [*trajectory("p", "S a M b won", success=True), *trajectory("q", "S a M c X")]
    batch = assembled(rows).batch
    reach = Reach(doubt=1.0)
    # S, M, X, and the goal.
    assert reach.value(batch).tolist() == pytest.approx([1 / 2, 1 / 2, 0, 1])
    expected = [1 - 4 / 9, 1 - 2 / 3, np.nan, 0]
    assert reach.share_of_doubt(batch).tolist() == pytest.approx(expected, nan_ok=True)


def test_a_step_of_chance_has_the_mean_of_its_outcomes():
    """Action a leads from S to M, where the goal is, and to X: Q = V_1(M) / 2 = 1/4 with κ = 1.

    V_2(S) = (1/2 + 0) / (2 + 1) = 1/6, and without one a (1/2 - 1/4) / 2 = 1/8; M and X have 0
    without their step. Nothing is contradicted that a history tells, which has resolved 2 of 4 and
    one contradiction each of two steps: η = 2/(4 + 2).
    """
    rows = [*trajectory("p", "S a M b won", success=True), *trajectory("q", "S a X b Y")]
    found = parts(rows, doubt=1.0, normalize="none")
    assert found["step_reward"] == pytest.approx([1 / 2 - 1 / 6, 1 - 1 / 2, 0 - 1 / 6, 0])
    expected = [1 / 4 - 1 / 8 + after(2 / 6) / 2, 1, 1 / 4 - 1 / 8, 0]
    assert found["advantage"] == pytest.approx(expected)


def scored(score: float) -> list[Row]:
    """Return a group: M led to `score` and to 1, N to nothing; nobody won."""
    return [
        step
        for name, walk, reward in (
            ("p", "S a M b X", 1.0),
            ("q", "S a M c Y", score),
            ("r", "S d N c Z", 0),
        )
        for step in trajectory(name, walk, rewards=[0.0, reward])
    ]


def test_scores_are_earned_where_nobody_wins():
    """κ = 1, H = 2, scores 1, 1/2 and 0: failures score e = 1/2, and so does the unknown.

    V_1(M) = (3/2 + e) / 3 = 2/3, V_1(N) = e / 2 = 1/4, V_2(S) = (2/3 + 2/3 + 1/4 + e) / 4 = 25/48.
    sd² = (1 + 1/4 + 1/2) / 4 - ((3/2 + 1/2) / 4)² = 3/16. η = 2/(4 + 1): a agreed with itself.
    Without one a, S has (2/3 + 1/4 + e) / 3 = 17/36, without d 11/18; M has (1/2 + e) / 2 = 1/2
    without b and 3/4 without c, N has e.
    """
    found = parts(scored(0.5), doubt=1.0)
    gain = np.array([7 / 48, 1 / 3, 7 / 48, -1 / 6, -13 / 48, -1 / 4])
    assert found["step_reward"] == pytest.approx(gain)
    value = np.array([17 / 36, 1 / 2, 17 / 36, 3 / 4, 11 / 18, 1 / 2])
    credit = np.array([2 / 3, 1, 2 / 3, 1 / 2, 1 / 4, 0]) - value
    credit[::2] += after(2 / 5) * gain[1::2]
    assert found["advantage"] == pytest.approx(credit * np.sqrt(2 * 16 / 3))


def test_what_no_state_foretells_is_told_by_the_outcome():
    """Equal ways end with other scores: nothing in the graph tells which was better."""
    rows = [
        step
        for name, first in zip("pqrs", "bbcc", strict=True)
        for step in trajectory(name, f"S {first} M go X", rewards=[0.0, float(first == "b")])
    ]
    credit = parts(rows)["advantage"]
    assert min(credit[0], credit[2]) > 0.1 > -0.1 > max(credit[4], credit[6])
    assert credit[1::2] == pytest.approx([0, 0, 0, 0])


def test_who_found_something_rare_is_credited_where_nobody_won():
    rows = [
        *trajectory("p", "hall a hall a hall"),
        *trajectory("q", "hall a hall a hall"),
        *trajectory("r", "hall a cellar a hall"),
    ]
    found = parts(rows)["step_reward"]
    assert max(found) == found[4] > 0
    assert found[0] == found[2] < 0


def test_a_lost_episode_ends_without_a_chance():
    rows = trajectory("p", "A a trap")
    lost = [rows[0] | {"terminated": True, "truncated": False}]
    # No step remains where it was cut either; but there, it might be searched on.
    assert parts(lost)["step_reward"] == parts(rows)["step_reward"]
    assert parts(lost)["step_reward"][0] < 0
    assert (steps_of(lost), steps_of(rows)) == ([-1], [0])


def hidden_of(*walks: str) -> float:
    rows = [row for number, walk in enumerate(walks) for row in trajectory(f"t{number}", walk)]
    batch = assembled(rows).batch
    (found,) = hidden_share(batch, np.zeros(batch.num_steps))
    return float(found)


def test_states_that_hide_where_they_are_are_found_out():
    """`hall` is two places. From A it leads to B, from B to A: what came before decides."""
    walk = "A a hall a B a hall a A a hall a B a hall a A"
    # Of the 4 halls of the other one, 2 led to the same, and all of those with a like history.
    # A and B led both to the hall: 2 choices without a contradiction.
    assert hidden_of(walk, walk) == pytest.approx((2 + 8 * (1 - 1 / 2)) / (4 + 2 + 8 * (1 - 1 / 2)))


def test_what_was_decided_several_steps_before_is_found_out():
    """A lever at the start decides where the hall leads to; two rooms look alike between them."""
    up = "S up R go R go R go hall go Q"
    down = "S down R go R go R go hall go X"
    # 4 steps in the hall: of 3 others, 1 led to the same; the one of a like history did. S is no
    # contradiction. R leads to R or the hall: of 9 others 6 or 3 agree, and the time tells which.
    told = 4 * (1 - 1 / 3) + 4 * (2 * (1 - 6 / 9) + (1 - 3 / 9))
    assert hidden_of(up, up, down, down) == pytest.approx((2 + told) / (4 + told + 2))


def test_a_group_without_contradictions_hides_little():
    """8 choices of two trajectories agree."""
    walk = " a ".join("ABCDEFGHI")
    assert hidden_of(walk, walk) == pytest.approx(2 / (4 + 8))
    assert hidden_of(walk) == pytest.approx(2 / 4)


def test_chance_is_not_taken_for_something_hidden():
    rng = np.random.default_rng(0)
    walks = [
        " a ".join(["S", *(f"{x} a hub" for x in rng.choice(["A", "B"], 200)), "S"])
        for _ in range(4)
    ]
    assert hidden_of(*walks) < 0.05


def test_what_reach_reads_must_be_there():
    batch = assemble(step_table(trajectory("p", "A a B"))).batch
    with pytest.raises(InputError, match="needs the input analogies"):
        Reach().assign(batch)


def test_progress_by_an_imagined_way():
    """From CARROT, `east` is supposed to lead to HALL at 3: it is at 4, and KITCHEN at 2.

    The steps of x are known, and keep their progress. To take the carrot loses at most a step."""
    assert steps_of(example()) == [1, 1, -1, 0]
    nearer = [
        *example(),
        *(
            row | {"admissible_actions": ["east", "drop", "look"]}
            for row in trajectory("z", ["a kitchen carrot pan", "go", CARROT])
        ),
    ]
    # A pan is nowhere without imagination, and with it at 5.
    assert steps_of(nearer)[-1] == 1


def test_progress_is_a_share_of_what_the_step_cost():
    rows = example()
    rows[0]["cost"], rows[2]["cost"] = 2.0, 8.0
    # KITCHEN at 3, CARROT at 2 · 3 + 1.
    assert steps_of(rows) == pytest.approx([1, 1, (3 - 7) / 8, 0])


def test_imagination_that_makes_what_is_known_look_idle_is_not_believed():
    """The way is from room 1 to room 5. That `jump` led from a like cellar to room 5 is no way."""
    rooms = [f"room {n}" for n in range(1, 6)]
    lists = {room: ["go", "jump", "sing"] for room in rooms[:-1]}
    lists |= {"room 5": ["go", "win"], "room cellar": ["go", "jump"]}
    walk = [word for room in rooms[:-1] for word in (room, "go")]
    rows = [
        *trajectory("x", [*walk, "room 5", "win", "won"], success=True),
        *trajectory("y", ["room cellar", "jump", "room 5", "go", "room 5"]),
    ]
    rows = [row | {"admissible_actions": lists[row["state"]]} for row in rows]
    batch = assembled(rows).batch
    # From each of the four rooms, at 1 / (2/3 · 1/3): 4.5 and 1 beside the walked 5, 4, 3 and 2.
    assert batch.input("analogies").cost.tolist() == pytest.approx([4.5] * 4)
    assert steps_of(rows) == [1, 1, 1, 1, 1, 1, 0]
    far = [f"room {n} of 30" for n in range(1, 31)]
    walk = [word for room in far[:-1] for word in (room, "go")]
    long = [
        *trajectory("x", [*walk, far[-1], "win", "won"], success=True),
        *trajectory("y", ["room cellar of 30", "jump", far[-1], "go", far[-1]]),
    ]
    lists = {room: ["go", "jump", "sing"] for room in far[:-1]}
    lists |= {far[-1]: ["go", "win"], "room cellar of 30": ["go", "jump"]}
    long = [row | {"admissible_actions": lists[row["state"]]} for row in long]
    # From all rooms but the last three, the jump would be nearer, and each step there idle.
    assert steps_of(long)[:30] == [1] * 30


def test_without_a_success_progress_leads_to_what_is_new():
    """N is 1/4 in KITCHEN, 5/4 in CARROT: 30/N = 120 and 24. HALL is a dead end."""
    rows = example(success=False)
    assert steps_of(rows) == [-1, 1, 0]
    dear = [row | {"cost": 4.0} for row in rows]
    assert steps_of(dear) == [-1, 1, 0]


WORTHLESS: dict[str, Callable[[int], list[str] | None]] = {
    "constant": lambda number: EVERYTHING,
    "changing": lambda number: [*EVERYTHING, f"wait {number} minutes"],
}
"""Number of a step to a list that says nothing of its state, by what the report calls it."""


def relisted(rows: list[Row], worth: str) -> list[Row]:
    """Return the steps with worthless lists."""
    lists = map(WORTHLESS[worth], range(len(rows)))
    return [row | {"admissible_actions": own} for row, own in zip(rows, lists, strict=True)]


@pytest.mark.parametrize("worth", WORTHLESS)
@pytest.mark.parametrize("success", [True, False])
def test_lists_that_say_nothing_are_as_no_lists(worth: str, success: bool):
    rows = example(success=success)
    without = [row | {"admissible_actions": None} for row in rows]
    assert parts(relisted(rows, worth)) == parts(without)


@pytest.mark.parametrize("worth", WORTHLESS)
def test_each_group_is_judged_by_itself_and_the_report_says_so(tmp_path: Path, worth: str):
    sound = example(success=False)
    broken = relisted(example(task_id="t1"), worth)
    broken = [row | {"trajectory_id": f"t1-{row['trajectory_id']}"} for row in broken]
    store = write_store(tmp_path / "s", sound, broken)
    (report,) = assign_credit(store, CreditSettings(estimators=configure(["reach"]))).values()
    assert report.action_lists == {"useful": 1, worth: 1}
    (notice,) = report.notices
    assert notice.startswith(f"1 of 2 groups has {MEANING[Worth[worth.upper()]]}: reach imagines")
    # Without the way that is imagined, to take the carrot is a loss all the same.
    credit = [row["reach_progress"] for row in stored(store)]
    assert credit == pytest.approx([-1, 1, 0, 1, 1, -1, 0])
    with pytest.warns(CreditWarning, match="1 of 2 groups has") as said:
        table = compute(step_table([*sound, *broken]), estimators=["reach"])
    assert table["reach_progress"].to_pylist() == credit
    assert [str(warning.message) for warning in said] == [notice]


def test_who_logs_no_lists_is_not_told_so(tmp_path: Path):
    rows = [row | {"admissible_actions": None} for row in example()]
    store = write_store(tmp_path / "s", rows)
    (report,) = assign_credit(store, CreditSettings(estimators=configure(["reach"]))).values()
    assert (report.action_lists, report.notices) == ({"missing": 1}, [])


def test_states_that_are_merged_are_one_state(tmp_path: Path):
    """With the carrot ignored, both states are one: nothing is left to imagine."""
    store = write_store(tmp_path / "s", example())
    merge = MergeSettings(substitute=(" carrot=>",), guard=False)
    assert [row["reach_progress"] for row in credited(store, merge=merge)] == [1, 1, 0, 0]


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


@pytest.mark.parametrize(("cheap", "dear"), [(5e-324, 1e308), (1e-9, 1e9), (1e308, 1e308)])
def test_extreme_costs_give_finite_credit(cheap: float, dear: float):
    for success in (True, False):
        rows = example(success=success)
        for row, cost in zip(rows, (cheap, dear, dear, cheap), strict=False):
            row["cost"] = cost
        assert all(np.isfinite(values).all() for values in parts(rows).values())


def credited(store: Store, iteration: int = 0, **options: Any) -> list[Row]:
    assign_credit(store, CreditSettings(estimators=configure(["reach"]), **options))
    return stored(store, iteration)


def stored(store: Store, iteration: int = 0) -> list[Row]:
    tables = [pq.ParquetFile(shard.credit_path).read() for shard in store.shards(None, iteration)]
    return [row for table in tables for row in table.to_pylist()]


def test_a_window_lends_what_was_walked_and_tried(tmp_path: Path):
    """CARROT is left by `drop`, to KITCHEN, which the window knows the way from."""
    write_store(tmp_path / "s", example())
    dropped = trajectory("z", [CARROT, "drop", KITCHEN], logged_at=START)
    store = write_store(
        tmp_path / "s",
        [row | {"admissible_actions": POSSIBLE[CARROT]} for row in dropped],
        iteration=1,
    )
    # Alone, CARROT's list tells nothing apart, and both its words and the kitchen's are seen.
    assert [row["reach_progress"] for row in credited(store, 1)] == [-1]
    assert [row["reach_progress"] for row in credited(store, 1, graph_window=1)] == [1]


@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(before=logs(), rows=logs())
def test_with_a_window_it_agrees_with_the_slow_one(
    tmp_path: Path, before: list[Row], rows: list[Row]
):
    root = tmp_path / str(len(list(tmp_path.iterdir())))
    write_store(root, before, iteration=0)
    # So that some trajectory is complete.
    store = write_store(root, [*rows, *trajectory("whole", "A go B", task_id="t9")], iteration=1)
    names = ("reach_advantage", "reach_progress")
    found = [tuple(row[name] for name in names) for row in credited(store, 1, graph_window=1)]
    earlier, num_compared = groups_of(before), 0
    for task, group in groups_of(rows).items():
        values, steps = reach(group, earlier=earlier.get(task)), progress(group, earlier.get(task))
        for (name, index), value in values.items():
            (place,) = [
                number
                for number, row in enumerate(rows)
                if (row["trajectory_id"], row["step_index"]) == (name, index)
            ]
            expected = pytest.approx((value, steps[name, index]), rel=1e-5, abs=1e-6)
            assert found[place] == expected, (task, name, index)
            num_compared += 1
    assert sum(own[0] is not None for own in found[: len(rows)]) == num_compared
