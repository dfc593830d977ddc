"""Outcomes of untried actions, and the novelty of states: worked by hand."""

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from graphcredit.credit.inputs.analogies import jaccard, text_slices
from graphcredit.credit.inputs.analogies.untried_actions import Analogies
from graphcredit.credit.inputs.table import ANALOGIES
from graphcredit.credit.iteration.assemble import assemble
from tests.credit.strategies import logs
from tests.credit.untried_worlds import CARROT, HALL, POSSIBLE, example
from tests.examples import examples
from tests.worlds import step_table, trajectory

Row = dict[str, Any]


def found(rows: list[Row]) -> Analogies:
    return assemble(step_table(rows), inputs=[ANALOGIES]).batch.input("analogies")


def imagined(rows: list[Row]) -> list[tuple[int, int, float]]:
    """Return (node, where an untried action may lead, at what cost)."""
    analogies = found(rows)
    parts = (analogies.source, analogies.target, analogies.cost.round(9))
    return list(zip(*(part.tolist() for part in parts), strict=True))


def test_an_untried_action_does_what_it_did_in_the_most_alike_state():
    # Nodes KITCHEN, HALL, CARROT, goal. KITCHEN and CARROT are alike 1/3. `east` is untried at
    # CARROT; `look` is at KITCHEN, and stayed where it was taken.
    assert imagined(example()) == [(2, 1, 3.0)]


def test_where_alike_states_disagree_nothing_is_known():
    """`go` was taken in two states that are as alike the third."""
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
    assert imagined(rows) == []
    # If both lead to the den, it is known, at the cost of either.
    rows[2] |= {"next_state": "den"}
    nodes = {"room one": 0, "den": 1, "room two": 2, "room three": 3}
    assert {edge for edge in imagined(rows) if edge[0] == nodes["room three"]} == {(3, 1, 3.0)}


def test_a_refused_action_tried_nothing():
    refused = [
        row | {"admissible_actions": POSSIBLE[row["state"]]}
        for row in trajectory("z", [CARROT, "east", CARROT], invalid=(0,))
    ]
    assert (2, 1, 3.0) in imagined([*example(), *refused])


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
        # HALL is the first node here.
        assert (2, 0, 3.0) in imagined(rows)


def test_new_is_what_nobody_did_there_the_less_the_more_often_it_was_done_elsewhere():
    """KITCHEN: `look` was taken once elsewhere. CARROT: `east` once, `drop` never. HALL: no step
    left it, so that its list is not known."""
    new = found(example(success=False)).novelty
    assert new.tolist() == pytest.approx([1 / 4, 0, 1 / 4 + 1])


def test_without_lists_new_is_what_has_rare_words():
    """The visits: KITCHEN twice, HALL once, CARROT twice."""
    rows = [row | {"admissible_actions": None} for row in example(success=False)]
    kitchen = 2 / (1 + 4) ** 2 + 1 / (1 + 4) ** 2  # a, kitchen, and the pair
    hall = 3 / (1 + 1) ** 2  # the, hall, and the pair
    carrot = kitchen + 2 / (1 + 2) ** 2  # carrot, and kitchen carrot
    assert found(rows).novelty.tolist() == pytest.approx([kitchen, hall, carrot])


@settings(max_examples=examples(30))
@given(rows=logs())
def test_the_size_of_a_block_changes_nothing(rows: list[Row]):
    whole = imagined(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jaccard, "_BLOCK", 1)
        assert imagined(rows) == whole


@pytest.mark.parametrize("success", [True, False], ids=["imagined", "new"])
@pytest.mark.parametrize("has_lists", [True, False], ids=["lists", "words"])
def test_texts_are_split_some_groups_at_a_time_and_it_changes_nothing(
    success: bool, has_lists: bool, monkeypatch: pytest.MonkeyPatch
):
    rows = [
        row
        | {"trajectory_id": f"{task}-{row['trajectory_id']}"}
        | ({} if has_lists else {"admissible_actions": None})
        for task in "abc"
        for row in example(task_id=task, success=success)
    ]
    whole, new = imagined(rows), found(rows).novelty.tolist()
    assert any(new) != success
    monkeypatch.setattr(text_slices, "_BYTES", 1)
    assert (imagined(rows), found(rows).novelty.tolist()) == (whole, new)


def test_a_slice_of_texts_is_of_whole_groups():
    texts = pa.array(["word" * 10] * 5 + [None])
    starts = np.array([0, 2, 3, 6])
    assert list(text_slices.text_slices(texts, starts)) == [range(6)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_slices, "_BYTES", 100)
        assert list(text_slices.text_slices(texts, starts)) == [range(3), range(3, 6)]
    assert list(text_slices.text_slices(texts[:0], starts[:1])) == []


@pytest.mark.parametrize("few", [1, 16, 10_000])
def test_what_few_states_have_is_compared_as_what_many_have(few: int, monkeypatch: Any):
    rng = np.random.default_rng(0)
    own = [set(rng.integers(0, 70, rng.integers(0, 9)).tolist()) for _ in range(50)]
    pairs = [(10 + node, code) for node, codes in enumerate(own) for code in sorted(codes)]
    node, code = np.array(pairs).T
    monkeypatch.setattr(jaccard, "_FEW", few)
    sets = jaccard.Sets(node=node, code=code)
    (block,) = jaccard.compare([sets], np.array([0, 10, 60]), np.array([1]))
    assert (block.rows, block.first) == (range(10, 60), 10)
    for one, other in itertools.permutations(range(50), 2):
        either = len(own[one] | own[other])
        expected = len(own[one] & own[other]) / either if either else 1.0
        assert block.alike[one, other] == pytest.approx(expected)


def test_words_that_one_state_alone_has_take_no_memory():
    """60 states with 2 words that all have and 50 of their own: 1 word of bits each, not 47."""
    node = np.repeat(np.arange(60), 52)
    code = np.concatenate([[0, 1, *range(2 + 50 * n, 52 + 50 * n)] for n in range(60)])
    sets = jaccard.Sets(node=node, code=code)
    members = jaccard._Members.of(sets, 0, 60)
    assert (members.bits.shape, len(members.holder)) == ((60, 1), 0)
    is_other = ~np.eye(60, dtype=bool)
    np.testing.assert_allclose(members.index(0, 60)[is_other], 2 / 102)


def test_words_that_few_states_have_take_no_bits():
    """480 states, each word in two of them: 480 words, no bit of them."""
    node, code = np.repeat(np.arange(480), 2), np.repeat(np.arange(480), 2)
    code[1::2] = (code[1::2] + 1) % 480
    members = jaccard._Members.of(jaccard.Sets(node=node, code=code), 0, 480)
    assert (members.bits.any(), members.bits.shape[1]) == (False, 1)
    assert members.index(0, 1)[0, [0, 1, 2, 479]] == pytest.approx([1, 1 / 3, 0, 1 / 3])
