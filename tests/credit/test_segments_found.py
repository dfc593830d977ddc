"""Kinds of noise that are no numbers and no phrases, and what looks like them and is a state."""

import random
from collections import Counter
from typing import Any

import pytest

from benchmarks.noise import found, later
from benchmarks.noise.disturb import disturb_steps
from experiments.credit_truth.judge import Played, Unit
from experiments.credit_truth.rollouts import step_table
from graphcredit.credit.iteration.assemble import assemble
from graphcredit.credit.merging.merger import open_merger
from graphcredit.credit.merging.segments.noise.garbled import GarbledWords
from graphcredit.credit.merging.segments.noise.repeats import Repeats
from graphcredit.credit.merging.segments.rules import NoiseRules
from graphcredit.credit.merging.segments.text.parse import Segment, name_of
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.merging.segments.text.tokens import tokenise
from graphcredit.credit.merging.table import MergeSettings
from tests.credit.test_segments import lamp_world
from tests.worlds import step_table as table_of
from tests.worlds import trajectory

MOST_NODES = {"footed": 1.8, "doubled": 1.3, "garbled": 1.3}
"""Nodes for each state, at most; others have at most 1.1."""


def states_of(rows: list[dict[str, Any]], noise: Any = None) -> list[int]:
    """Return the state of each step, merged by segments."""
    table = table_of(rows)
    if noise:
        table = disturb_steps(table, noise, 0)
    merger = open_merger(MergeSettings(merge="segments")).learn([table])
    return assemble(table, merger=merger).batch.state_of_step.tolist()


@pytest.mark.parametrize("flicker", [0.0, 0.2])
@pytest.mark.parametrize("kind", found.KINDS)
def test_states_that_differ_in_a_word_are_found_and_stay_two(kind: str, flicker: float):
    rows, _ = lamp_world(flicker)
    truth = assemble(table_of(rows)).batch.state_of_step.tolist()
    node = states_of(rows, found.KINDS[kind])
    pairs = set(zip(node, truth, strict=True))
    assert len(pairs) == len(set(node))
    assert len(pairs) <= MOST_NODES.get(kind, 1.1) * len(set(truth))


def pairs(codes: list[tuple[int, ...]] | list[int]) -> int:
    return sum(number * (number - 1) // 2 for number in Counter(codes).values())


@pytest.mark.parametrize(
    ("world", "kind"),
    [
        *(("vault", kind) for kind in ("loaded", "starred", "padded", "progress", "typeset")),
        *(("rabbit", kind) for kind in ("padded", "opened", "located", "typeset")),
        *(("safe", kind) for kind in ("loaded", "typeset")),
        ("push", "typeset"),
    ],
)
def test_maps_and_positions_stay_under_noise_beside_them(world: str, kind: str):
    """A map of signs, somebody who hops about, a code with a sign for what is not known."""
    unit = Unit(world=world, policy="quarter", seed=0, num_groups=8, estimators=("grpo",))
    played = Played.of(unit)
    clean = step_table(played.world, played.rollouts, group_size=8, lists="none")
    noisy = disturb_steps(clean, {**later.KINDS, **found.KINDS}[kind], 0)
    merger = open_merger(MergeSettings(merge="segments")).learn([noisy])
    node = assemble(noisy, merger=merger).batch.state_of_step.tolist()
    truth = assemble(clean).batch.state_of_step.tolist()
    right = pairs(list(zip(node, truth, strict=True)))
    assert right >= 0.98 * pairs(node)
    # Where blanks are drawn at random, a map is not known again; beside it, it is.
    assert right >= (0.2 if kind in ("padded", "typeset") else 0.6) * pairs(truth)


def dealt(*, is_used: bool = False) -> list[dict[str, Any]]:
    """Return steps of rollouts through three rooms, each with a code that it was dealt."""
    rows: list[dict[str, Any]] = []
    for task in range(4):
        for number in range(8):
            rng = random.Random(f"{task} {number}")
            code = 10**5 + rng.randrange(10**5)
            room, path = 0, [f"A note: {code}.\nThis is the hall."]
            for _ in range(8):
                step = rng.choice((-1, 1))
                room = (room + step) % 3
                name = ("hall", "garden", "cellar")[room]
                path += [f"go {step:+d}", f"A note: {code}.\nThis is the {name}."]
            path += [f"dial {code}" if is_used else "wait", path[-1]]
            rows += trajectory(f"{task}-{number}", path, task_id=f"t{task}")
    return rows


def test_a_value_of_its_own_for_each_rollout_is_a_name():
    assert len(set(states_of(dealt()))) == 4 * 3


def test_a_value_that_an_action_needs_is_no_name():
    rows = dealt(is_used=True)
    assert len(set(states_of(rows))) == len({row["state"] for row in rows})


def test_a_second_segment_is_left_out_only_where_its_number_says_nothing():
    parsed = Parsed.of(["a coin\na door\na coin\na door"])
    coin = Segment("", ("a", "coin"))
    assert Repeats().once(parsed).lists() == [[0, 1, 0, 1]]
    assert Repeats(idle=frozenset({coin})).once(parsed).lists() == [[0, 1, 1]]
    assert Repeats(telling=frozenset({coin})).once(parsed).lists() == [[0, 1, 0]]
    assert Repeats(telling=frozenset()).once(parsed).lists() == [[0, 1]]


@pytest.mark.parametrize(
    ("token", "word"),
    [
        ("d0or", "door"),
        ("d00r", "door"),
        ("1t", "it"),
        ("d0n't", "don't"),
        ("d07r", "d07r"),
        ("b1t", "b1t"),
        ("door", "door"),
        ("100", "100"),
    ],
)
def test_digits_stand_for_the_letters_they_look_like_if_that_is_one_word(token: str, word: str):
    rules = GarbledWords(words=frozenset({"door", "it", "don't", "bit", "blt", "ioo"}))
    assert rules.meant(token) == word


def test_the_name_of_a_field_may_be_words_before_it():
    rules = NoiseRules(loose_fields=frozenset({"well:"}))
    assert rules.as_words(Segment(".text well:", ("a", "door"))) == Segment(
        ".text", ("well", ":", "a", "door")
    )
    other = Segment("hp:", ("7",))
    assert rules.as_words(other) == other
    assert [name_of(a) for a in ("a.b:", ".a", ".a b:", "<p>", "")] == ["a.b:", "", "b:", "", ""]


def test_typographic_signs_are_plain_ones():
    assert tokenise("Don’t – “look”") == tokenise('Don\'t - "look"')
