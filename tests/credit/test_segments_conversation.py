"""What people say differs from time to time, but is no noise on a state."""

import random
from typing import Any

import pytest

from graphcredit.credit.iteration.assemble import assemble
from graphcredit.credit.merging.merger import open_merger
from graphcredit.credit.merging.segments.text.resemblance import Resemblance
from graphcredit.credit.merging.table import MergeSettings
from tests.worlds import step_table, trajectory

THINGS = ("flight", "ticket", "seat", "refund", "voucher", "booking", "invoice", "meal")
ASKS = (
    "I need some help with changing my {}, please.",
    "I was hoping to adjust my {} a bit, if that is possible.",
    "I'd like to make a change to the {} that I have.",
    "I have a {} and I want to move it to a later day.",
)
ANSWERS = (
    "Could you then tell me what it would cost to keep the {}?",
    "What if I make three separate requests for the {} instead?",
    "I'd like to cancel the {} if you can not change it.",
    "I don't have the number of the {} with me right now.",
    "I'll get back to you when I have found my {}.",
)
ADVERTS = ("Buy one {} and get one free!", "Our best {} is now half the price!")


def talks() -> list[dict[str, Any]]:
    """Return steps of conversations that begin with one wish, worded anew each time."""
    rows: list[dict[str, Any]] = []
    for task in range(12):
        rng = random.Random(task)
        for number, ask in enumerate(rng.sample(ASKS, 4)):
            path = [f"Hi! {ask.format(THINGS[task % 8])}"]
            for _ in range(4):
                answer = rng.choice(ANSWERS).format(rng.choice(THINGS))
                path += [rng.choice(("ask", "look up", "explain")), f"I see. {answer}"]
            rows += trajectory(f"{task}-{number}", path, task_id=f"t{task}")
    return rows


def rooms(texts: list[str]) -> list[dict[str, Any]]:
    """Return steps through three rooms, each seen beside one of these texts or alone."""
    rows: list[dict[str, Any]] = []
    for task in range(12):
        rng = random.Random(task)
        for number in range(4):
            path: list[str] = []
            for room in ("A kitchen with a long table.", "A dark cellar.", "A garden with a pond."):
                beside = rng.choice(texts) if rng.random() < 0.5 else ""
                path += [f"{room}\nThe door is open.\n{beside}".strip(), "go on"]
            rows += trajectory(f"{task}-{number}", path[:-1], task_id=f"t{task}")
    return rows


def num_states(rows: list[dict[str, Any]]) -> tuple[int, int]:
    """Return how many states the merge finds, and how many distinct texts there are."""
    table = step_table(rows)
    merger = open_merger(MergeSettings(merge="segments")).learn([table])
    found, exact = assemble(table, merger=merger), assemble(table)
    return found.merged.num_states, exact.merged.num_states


def test_different_sentences_stay_different_states():
    found, exact = num_states(talks())
    assert found == exact


def test_adverts_are_noise_though_some_were_never_seen_to_come_and_go():
    texts = [text.format(thing) for text in ADVERTS for thing in THINGS]
    found, exact = num_states(rooms(texts))
    assert exact > 80
    assert found == 12 * 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("buy one meal and get one free", True),
        ("one free seat", True),
        ("a meal is not free", False),
        ("something else", False),
        ("", False),
    ],
)
def test_a_text_resembles_another_if_half_of_their_words_are_equal(text: str, expected: bool):
    known = Resemblance(
        [["buy", "one", "seat"], ["buy", "one", "seat", "and", "get", "one", "free"]]
    )
    assert known.resembles(text.split()) == expected
    assert known.resembles(text.split()[::-1]) == expected
