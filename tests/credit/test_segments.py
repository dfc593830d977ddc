"""Segments that stay with a state, and segments that come and go."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.merger import MergeReport, open_merger
from graphcredit.credit.merging.segments.cut import Visits, cut, identities, visits_of
from graphcredit.credit.merging.segments.evidence import Evidence, Judge
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.credit.steps.batches import plan_batches
from graphcredit.credit.steps.complete import complete_trajectories
from graphcredit.credit.steps.nodes import Nodes, exact_nodes
from tests.worlds import step_table, trajectory, write_store


def segments(text: str) -> list[str]:
    """Return the segments of one text, in order."""
    found = cut([text])
    return [found.names[code] for code in found.segment.tolist()]


def merged(rows: list[dict[str, Any]], **settings: Any) -> tuple[Nodes, MergeReport]:
    """Return the nodes of some steps, merged by segments learned from the same steps."""
    table = step_table(rows)
    merger = open_merger(MergeSettings(merge="segments", **settings)).learn([table])
    steps, _ = complete_trajectories(table)
    found = merger.nodes(steps, table)
    return found.nodes, found.report


def test_a_text_is_cut_at_lines_punctuation_and_bullets():
    text = (
        "-= Kitchen =-\nYou see a fridge, and 2.5 litres of milk.\n* It's well-lit | Exits: north"
    )
    assert segments(text) == [
        "kitchen",
        "you see a fridge",
        "and 2.5 litres of milk",
        "it's well-lit",
        "exits",
        "north",
    ]


@pytest.mark.parametrize(
    "layout",
    [
        "KITCHEN. THERE IS A DOOR LEADING EAST.",
        "* Kitchen\n* There  is a door leading east",
        "## Kitchen\n\nThere is a door\nleading east.",
        "Kitchen | there is a door leading east",
        "```\nKitchen.\nThere is a door leading east\n```",
    ],
)
def test_layout_does_not_change_the_segments(layout: str):
    assert segments(layout) == ["kitchen", "there is a door leading east"]


@given(st.lists(st.text(), max_size=5))
def test_segments_are_those_of_each_text_alone(texts: list[str]):
    found = cut(texts)
    assert found.num_texts == len(texts)
    for number, text in enumerate(texts):
        codes = found.segment[found.text == number].tolist()
        assert [found.names[code] for code in codes] == segments(text)


def test_the_distinct_segments_of_some_texts():
    found = cut(["a. b. a.", "", "c. a."])
    position, segment = found.of(np.array([2, 1, 0, 2]))
    names = [found.names[code] for code in segment.tolist()]
    assert list(zip(position.tolist(), names, strict=True)) == [
        (0, "c"),
        (0, "a"),
        (2, "a"),
        (2, "b"),
        (3, "c"),
        (3, "a"),
    ]


def classes(*rows: list[dict[str, Any]]) -> list[int]:
    """Return the class of each visit, numbered in order of first appearance."""
    steps, _ = complete_trajectories(step_table([step for row in rows for step in row]))
    nodes = exact_nodes(steps)
    visits = visits_of(steps, nodes, np.full(len(nodes.text_of_node), -1))
    order: dict[int, int] = {}
    return [order.setdefault(code, len(order)) for code in visits.certain.tolist()]


def test_the_same_actions_from_the_start_lead_to_one_state():
    # x: start, after a, after a b; y: start, after a, after a c; then the ends of x and y.
    assert classes(trajectory("x", "A a B b C"), trajectory("y", "A2 a B2 c D")) == [
        *(0, 1),
        *(0, 1),
        *(2, 3),
    ]


def test_an_invalid_action_does_not_leave_the_state():
    rows = trajectory("x", "A q A2 a B", invalid=(0,)), trajectory("y", "A3 a B2")
    assert classes(*rows) == [0, 0, 0, 1, 1]


def test_groups_share_no_state():
    rows = trajectory("x", "A a B", task_id="t0"), trajectory("y", "A a B", task_id="t1")
    assert classes(*rows) == [0, 1, 2, 3]


def test_a_success_ends_in_the_goal_and_not_in_a_visit():
    assert classes(trajectory("x", "A a B", success=True), trajectory("y", "A a B")) == [0, 0, 1]


def visits(*node_and_class: tuple[int, int], indices: list[int] | None = None) -> Visits:
    """Return visits of one group."""
    node, certain = np.array(node_and_class).T
    index = np.zeros(len(node), np.int64) if indices is None else np.array(indices)
    return Visits(node=node, certain=certain, group=np.zeros(len(node), np.int64), index=index)


def test_evidence_counts_classes_that_all_or_only_some_visits_agree_in():
    found = cut(["Hall. Sale!", "Hall.", "Hall. Lamp.", "Attic."])
    evidence = Evidence()
    # Class 0 sees texts 0 and 1, class 1 text 2 twice, class 2 is alone.
    evidence.add(found, visits((0, 0), (1, 0), (2, 1), (2, 1), (3, 2)))
    assert evidence.stays == {"hall": 2, "lamp": 1}
    assert evidence.comes == {"sale": 1}
    assert (evidence.num_shared, evidence.num_shared_lonely) == (4, 1)
    assert (evidence.num_single, evidence.num_single_lonely) == (1, 1)


def test_what_comes_and_goes_is_noise_and_unseen_segments_are_judged_by_their_words():
    evidence = Evidence(num_shared=10, num_single=10, num_single_lonely=1)
    evidence.comes.update({f"buy {thing} 5 now": 1 for thing in ("hats", "cars", "tea", "figs")})
    evidence.stays.update({"hall": 3, "a lamp": 4, "you see a door": 3, "a key": 1, "tea": 9})
    names = ["buy tea 5 now", "hall", "buy rugs 77 now", "a red door", "tea"]
    recurring, once = Judge(evidence).verdicts(names)
    assert recurring.tolist() == [True, False, True, False, False]
    assert once.tolist() == recurring.tolist()


def test_a_segment_seen_once_is_noise_where_such_segments_come_and_go():
    # Half the visits to states seen twice have one, and no more of the other visits.
    evidence = Evidence(num_shared=40, num_shared_lonely=20, num_single=40, num_single_lonely=20)
    evidence.comes.update({"xyzzy plugh": 1, "grue zork": 1})
    evidence.stays.update({"hall": 3, "a lamp": 4, "a key": 2})
    recurring, once = Judge(evidence).verdicts(["foo bar", "a red lamp"])
    assert recurring.tolist() == [False, False]
    assert once.tolist() == [True, False]


def test_without_noise_nothing_is_noise():
    evidence = Evidence(num_shared=5, num_single=5, num_single_lonely=5)
    evidence.stays.update({"hall": 3, "a lamp": 4})
    recurring, once = Judge(evidence).verdicts(["hall", "a red lamp", "unseen"])
    assert recurring.tolist() == once.tolist() == [False] * 3


def test_a_segment_that_only_counts_the_steps_is_noise():
    found = cut(["Step 1. Room 4.", "Step 2. Room 4.", "Step 3. Room 7.", "Step 2. Room 5."])
    evidence = Evidence()
    evidence.add(found, visits((0, 0), (1, 1), (2, 2), (3, 3), indices=[0, 1, 2, 1]))
    recurring, _ = Judge(evidence).verdicts(["step 2", "step 99", "room 4"])
    assert recurring.tolist() == [True, True, False]


def test_where_one_action_led_is_evidence_in_its_group():
    """After `b` both are in the yard, though they came to the hall by different actions."""
    hall, yard = "A long hall.", "A green yard."
    rows = [
        *trajectory("x", [hall, "a", hall, "b", f"{yard} Hear the birds.", "c", hall]),
        *trajectory("y", [hall, "b", yard, "c", hall]),
    ]
    nodes, _ = merged(rows)
    assert nodes.state_of_step.tolist() == [0, 0, 1, 0, 1]


def test_identities_are_sets_or_lists_of_what_is_left():
    found = cut(["a. b. sale.", "b. a. a", "b. a", "sale"])
    is_noise = np.array([name == "sale" for name in found.names])
    is_noise = is_noise[found.segment]
    assert identities(found, is_noise, np.zeros(4, bool)).tolist() == [0, 0, 0, 1]
    assert identities(found, is_noise, np.ones(4, bool)).tolist() == [0, 1, 2, 3]


HALL, DOOR, OPEN = "A long hall.", "A closed door leads east.", "An open door leads east."


def hall_world() -> list[dict[str, Any]]:
    """Return two trajectories that open a door, with advertisements that differ."""
    first = [f"{HALL} Buy hats!\n{DOOR}", "open", f"{HALL}\n{OPEN}", "look", f"{HALL} {OPEN} Sale!"]
    other = [f"{HALL}\n{DOOR}", "open", f"{HALL}\n{OPEN} Buy figs!", "look", f"{HALL} {OPEN}"]
    return [*trajectory("x", first), *trajectory("y", other)]


def test_advertisements_go_and_doors_stay():
    nodes, report = merged(hall_world())
    assert nodes.state_of_step.tolist() == [0, 1, 0, 1]
    assert nodes.target_of_step.tolist() == [1, 1, 1, 1]
    assert nodes.num_texts.tolist() == [2, 4]
    assert (report.num_texts, report.num_states) == (6, 2)


def test_the_guard_holds_for_segments_too():
    other = trajectory("z", [f"{HALL} {DOOR}", "wait", f"{OPEN} {HALL}", "kick", "End."])
    lists = (["open"], ["look"], ["open"], ["look"], ["open"], ["kick"])
    rows = [
        row | {"admissible_actions": actions}
        for row, actions in zip([*hall_world(), *other], lists, strict=True)
    ]
    nodes, report = merged(rows)
    assert nodes.state_of_step.tolist() == [0, 1, 0, 1, 0, 2]
    assert report.num_refused == 1
    nodes, report = merged(rows, guard=False)
    # Without admissible actions the order of the segments counts.
    assert nodes.state_of_step.tolist() == [0, 1, 0, 1, 0, 2]
    assert report.num_refused == 0


def test_the_stage_learns_from_the_whole_iteration_before_it_merges(tmp_path: Path):
    """`Buy hats!` comes and goes in t0 only; t1 has it in a state that no class sees twice."""
    one = [f"{HALL} Buy hats!", "a", f"{HALL} {OPEN}", "b", HALL, "c", "End."]
    rows = hall_world() + trajectory("z", one, task_id="t1")
    store = write_store(tmp_path / "s", rows)
    assert len(plan_batches(store.shards(), 4).shards_of_batch) == 2
    wanted = {"estimators": configure(["graphgpo"]), "merge": MergeSettings(merge="segments")}
    tables: list[Any] = []
    for batch_rows in (4, 1000):
        assign_credit(store, CreditSettings(**wanted, batch_rows=batch_rows))
        tables.append(pq.ParquetFile(store.shards()[0].credit_path).read())
    assert tables[0]["state_id"].to_pylist() == [0, 1, 0, 1, 0, 1, 0]
    assert tables[0].equals(tables[1])
