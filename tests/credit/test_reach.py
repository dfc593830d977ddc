"""Reach on worlds small enough to solve by hand."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from graphcredit.credit.estimators import outlook
from graphcredit.credit.estimators.earnings import Earnings
from graphcredit.credit.estimators.hidden_state import hidden_share
from graphcredit.credit.estimators.outlook import Places
from graphcredit.credit.estimators.reach import Reach
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.inputs.analogies.action_lists import MEANING, Worth
from graphcredit.credit.inputs.table import ANALOGIES
from graphcredit.credit.iteration.assemble import Assembly, assemble
from graphcredit.credit.iteration.in_memory import compute
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from graphcredit.store.errors import CreditWarning, InputError
from tests.credit.strategies import logs
from tests.credit.untried_worlds import CARROT, EVERYTHING, example
from tests.examples import examples
from tests.worlds import step_table, trajectory, write_store

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


def play(name: str, walk: str, score: float = 0.0, **columns: Any) -> list[Row]:
    """Return one trajectory that earns its score by the last step; 1 is a success."""
    rewards = [0.0] * (len(walk.split()) // 2 - 1) + [score]
    return trajectory(name, walk, rewards=rewards, success=score == 1, **columns)


def plays(*walks: tuple[str, float]) -> list[Row]:
    return [row for number, walk in enumerate(walks) for row in play(f"t{number}", *walk)]


def grpo(rows: list[Row]) -> list[float]:
    """Return the advantage of GRPO."""
    (estimator,) = configure(["grpo"]).values()
    return estimator.assign(assembled(rows).batch)["advantage"].tolist()


FORK = (("S a M b won", 1.0), ("S a M c X", 0.0), ("S d N c X", 0.0))


def test_a_fork_by_hand():
    """Returns 1, 0, 0: mean 1/3, var 2/9, sd² = 3/8 - (3/8)²; N alone is without doubt.

    e = 1/9: V(M) = (1 + 0 + e)/3 = 10/27, V(N) = 0, V(S) = (2 · 10/27 + 0 + e)/4 = 23/108. Read,
    e = 1/3: V(M) = 4/9, V(S) = 11/36. One of six steps has a state of its own: α = 1/36, L = 1/3.
    Choice a was made twice and led to M: η = 2/(4 + 1).
    Beyond V(M), 17/27 and -10/27 followed a, 0 followed d: of S, B = 49/4374, and W = 1/2.
    """
    v = (1 / 2 + 2 * (2 / 9 + 1 / 16)) / (1 + 2)
    f_s, f_m = (49 / 4374 / v + 4) / (1 + 4), 4 / (1 + 4)
    w_s, w_m, w_n = (f**2 / (f**2 + 5) for f in (f_s, f_m, 1.0))
    fade = (2 / 5) ** (1 / 5)
    up, down = 10 / 27 + fade * 17 / 27, 10 / 27 - fade * 10 / 27
    outcome = [(1 - w_s) * up + w_s, 1, (1 - w_s) * down, 0, 0, 0]
    without_a, without_d = (23 / 27 - 10 / 27) / 3, 23 / 27 / 3
    baseline = [without_a, 1 / 18, without_a, 5 / 9, without_d, 1 / 3 - 35 / 36 * 2 / 9]
    rho = np.array([1, 1, 1, 1, 1, 3600 / 3601])
    assert (w_m, w_n) == pytest.approx((16 / 141, 1 / 6))
    found = parts(plays(*FORK))
    assert found["outcome"] == pytest.approx(outcome)
    assert found["baseline"] == pytest.approx(baseline)
    assert found["value"] == pytest.approx([11 / 36, 4 / 9, 11 / 36, 4 / 9, 11 / 36, 0])
    assert found["q"] == pytest.approx([4 / 9, 1, 4 / 9, 0, 0, 0])
    # From S the goal is 2 steps away, by M; N and X lead nowhere.
    assert found["progress"] == [1, 1, 1, -1, -1, 0]
    credit = (np.array(outcome) - baseline) * rho
    assert found["advantage"] == pytest.approx(credit * 8 / np.sqrt(15))
    assert parts(plays(*FORK), normalize="none")["advantage"] == pytest.approx(credit)


def choice(length: int, worth: float) -> list[Row]:
    """Return a group whose first action decides what all earn, many equal steps later."""
    shared = " ".join(f"R{number} go" for number in range(length))
    return plays(*((f"S {way} {shared} Z", worth * (way == "a")) for way in "aabb"))


@pytest.mark.parametrize("worth", [1.0, 0.5])
@pytest.mark.parametrize("length", [50, 500])
def test_a_choice_is_credited_however_late_its_outcome_comes(length: int, worth: float):
    rows = choice(length, worth)
    credit, whole = parts(rows)["advantage"], grpo(rows)
    for first in range(0, len(rows), length + 1):
        assert credit[first] / whole[first] >= 0.5
    if worth < 1:  # without a success, equal steps earn what no state foretells: η is 1
        assert credit[:: length + 1] == pytest.approx(parts(choice(3, worth))["advantage"][::4])


def test_where_all_lost_only_the_new_is_credited():
    rows = plays(("hall a hall a hall", 0), ("hall a hall a hall", 0), ("hall b cellar a hall", 0))
    credit = np.array(parts(rows)["advantage"])
    assert credit.argmax() == 4
    assert credit[4] > 0 > credit[0] == credit[2]
    assert abs(credit.mean()) <= 0.1
    assert abs(credit).max() <= 0.5
    assert set(parts(plays(("A a B a C", 0), ("A a B a C", 0)))["value"]) == {0.0}


@pytest.mark.parametrize("size", [1, 2, 8])
def test_the_new_is_worth_a_fifth_at_most_in_groups_of_any_size(size: int):
    rooms = [
        word for n in range(20) for word in ("b", " ".join(f"{n}{x}" for x in "abcdefghijklmnop"))
    ]
    rows = trajectory("t0", [*["hall", "a"] * 30, "hall", *rooms])
    others = [row for n in range(1, size) for row in trajectory(f"t{n}", "hall a " * 30 + "hall")]
    credit = np.array(parts(rows + others)["advantage"])
    assert credit.argmax() == 30
    assert 0.1 < np.abs(credit).max() <= 1 / 5


@settings(max_examples=examples(60))
@given(rows=logs())
def test_groups_that_are_swept_are_solved(rows: list[Row]):
    solved = parts(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outlook, "_DIRECT", 0)
        swept = parts(rows)
    for name, values in solved.items():
        assert swept[name] == pytest.approx(values, rel=1e-6, abs=1e-8), name


def test_sweeps_end_where_a_value_is_no_number():
    batch = assembled(plays(*FORK)).batch
    earned = Earnings.of(batch)
    places = Places.of(batch, earned, doubt=float("nan"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outlook, "_DIRECT", 0)
        (value,) = places.values(batch, earned, np.zeros(batch.num_nodes))
    assert np.isnan(value).any()


def test_a_very_long_corridor_is_passed_over():
    way = " go ".join(map(str, range(10_000)))
    found = parts(plays((f"S a {way}", 1), (f"S b {way}", 0)))
    assert all(np.isfinite(values).all() for values in found.values())


def hidden_of(*walks: str) -> float:
    rows = [row for number, walk in enumerate(walks) for row in trajectory(f"t{number}", walk)]
    batch = assembled(rows).batch
    (found,) = hidden_share(batch, np.zeros(batch.num_steps), np.zeros(batch.num_nodes, bool))
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
