"""Echoes, names and weather: outcomes decide whether they are noise."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcredit.credit.iteration.assemble import assemble
from graphcredit.credit.merging.merger import open_merger
from graphcredit.credit.merging.segments.counts.outcomes import dependence_on
from graphcredit.credit.merging.segments.looks.sample import SampledGroups
from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.noise.idle.claims import Claims
from graphcredit.credit.merging.segments.noise.idle.drawn import WordsLeftOut
from graphcredit.credit.merging.segments.noise.idle.echoes import find_echoes
from graphcredit.credit.merging.segments.noise.idle.frames import Frame, FrameIndex
from graphcredit.credit.merging.segments.noise.slots import SlotRules
from graphcredit.credit.merging.segments.text.parse import Segment
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.merging.segments.text.tokens import SLOT, kind_of, tokenise
from graphcredit.credit.merging.table import MergeSettings
from tests.credit import idle_worlds
from tests.credit.idle_worlds import ROOMS, World, rows_of
from tests.worlds import step_table


def merged(world: World, num_groups: int, seed: int = 0) -> tuple[list[int], list[int], int]:
    """Return the state of each step, merged by segments and by text, and the undecided pairs."""
    table = step_table(rows_of(world, num_groups, seed))
    merger = open_merger(MergeSettings(merge="segments")).learn([table])
    found = assemble(table, merger=merger)
    texts = assemble(table).batch.state_of_step.tolist()
    return found.batch.state_of_step.tolist(), texts, found.merged.num_undecided


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return steps as `states_of` has them."""
    return sorted(rows, key=lambda row: (row["task_id"], row["trajectory_id"], row["step_index"]))


def states_of(rows: list[dict[str, Any]]) -> list[int]:
    """Return the state of each step, merged by segments, in order."""
    table = step_table(rows)
    merger = open_merger(MergeSettings(merge="segments")).learn([table])
    return assemble(table, merger=merger).batch.state_of_step.tolist()


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("num_groups", [1, 2, 4, 16])
@pytest.mark.parametrize(
    "name", ["golem", "keeper", "rain", "slippery_rain", "lever", "storm", "fuel", "tide"]
)
def test_what_an_outcome_depends_on_is_kept(name: str, num_groups: int, seed: int):
    found, texts, _ = merged(getattr(idle_worlds, name), num_groups, seed)
    assert len(set(zip(found, texts, strict=True))) == len(set(found))


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("num_groups", [2, 4, 16])
def test_words_of_a_design_in_which_an_action_fails_are_kept(num_groups: int, seed: int):
    found, texts, _ = merged(idle_worlds.broken_design, num_groups, seed)
    assert len(set(zip(found, texts, strict=True))) == len(set(found))


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("num_groups", [4, 16])
def test_the_words_of_designs_stand_for_each_other(num_groups: int, seed: int):
    rows = rows_of(idle_worlds.design, num_groups, seed)
    found = states_of(rows)
    things = [row["state"].split(":")[1] for row in in_order(rows)]
    states = [
        (row["task_id"], row["state"].split("\n")[0], thing)
        for row, thing in zip(in_order(rows), things, strict=True)
    ]
    assert len(set(zip(found, states, strict=True))) == len(set(found)) == len(set(states))


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("num_groups", [4, 16])
def test_lines_that_come_twice_are_one_but_coins_are_counted(num_groups: int, seed: int):
    rows = rows_of(idle_worlds.doubled, num_groups, seed)
    found = states_of(rows)
    states = [
        (row["task_id"], row["state"].split("\n")[0], row["state"].count("coin"))
        for row in in_order(rows)
    ]
    assert len(set(zip(found, states, strict=True))) == len(set(found)) == len(set(states))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_is_drawn_at_every_look_and_matters_in_one_room_is_kept(seed: int):
    found, texts, _ = merged(idle_worlds.price, 16, seed)
    assert len(set(zip(found, texts, strict=True))) == len(set(found))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_values_that_matter_only_together_are_kept(seed: int):
    found, texts, _ = merged(idle_worlds.badge_and_gate, 16, seed)
    assert len(set(zip(found, texts, strict=True))) == len(set(found))


@pytest.mark.parametrize(
    "name", ["drizzle", "terminal", "badge", "sky", "visitor", "gauge", "swell", "beginning"]
)
def test_what_no_outcome_depends_on_is_left_out(name: str):
    found, texts, _ = merged(getattr(idle_worlds, name), 8)
    assert len(set(texts)) > 2 * 8 * len(ROOMS) * 0.9
    assert len(set(found)) == 8 * len(ROOMS)


def test_of_two_sentences_that_last_the_one_that_matters_is_kept():
    rows = in_order(rows_of(idle_worlds.sky_and_sound, 16))
    found = states_of(rows)
    lines = [row["state"].split("\n") for row in rows]
    states = [
        (row["task_id"], room, sound) for row, (room, _, sound) in zip(rows, lines, strict=True)
    ]
    assert len(set(zip(found, states, strict=True))) == len(set(found)) == len(set(states))


def test_luck_is_no_reason_to_keep_a_value():
    found, _, _ = merged(idle_worlds.lucky_drizzle, 8)
    assert len(set(found)) == 8 * len(ROOMS)


def test_where_too_little_was_seen_states_stay_apart_and_are_counted():
    found, texts, undecided = merged(idle_worlds.badge, 1)
    assert len(set(found)) == len(set(texts))
    assert undecided > 0


def test_frames_find_what_varies():
    sky = Frame("", ("it", "is"), ("outside",), 1)
    echo = Frame("", (">",), (), 0)
    frames = FrameIndex(frozenset({sky, echo}))
    assert frames.in_segment(Segment("", ("it", "is", "sunny", "outside"))) == [(sky, slice(2, 3))]
    assert frames.in_segment(Segment("", ("it", "is", "very", "wet", "outside"))) == []
    assert frames.in_segment(Segment("", (">", "go", "north"))) == [(echo, slice(1, 3))]
    assert frames.in_segment(Segment("field:", (">", "go"))) == []
    assert frames.in_segment(Segment("", (">",))) == []


def visits_in(rng: random.Random, number: int) -> Visits:
    """Return random visits, four of a trajectory, the last of which takes no action."""
    place = np.arange(number)
    trajectory = place // 4
    group = trajectory % 2
    is_last = place % 4 == 3
    return Visits(
        node=place,
        certain=group,
        walked=group,
        group=group,
        index=place % 4,
        trajectory=trajectory,
        taken=np.where(is_last, -1, np.array([rng.randrange(2) for _ in place])),
        is_valid=~is_last,
        outcome=np.array([rng.randrange(2) for _ in place]),
        succeeds=np.zeros(number, np.bool_),
    )


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_outcomes_are_compared_as_by_a_slow_one(seed: int):
    rng = random.Random(seed)
    visits = visits_in(rng, 48)
    rest = np.array([rng.randrange(2) for _ in range(48)])
    visit = np.array(sorted(rng.sample(range(48), 40)))
    value = np.array([rng.randrange(3) for _ in visit])
    found = dependence_on(np.zeros(40, np.int64), 1, visit, value, rest, visits)

    def place(row: int) -> tuple[int, ...]:
        at = visit[row]
        return tuple(int(codes[at]) for codes in (visits.group, rest, visits.taken))

    def outcome(row: int) -> tuple[int, int]:
        at = visit[row]
        return int(visits.outcome[at]), int(rest[at + 1])

    rows = [row for row in range(40) if visits.taken[visit[row]] >= 0]
    size = Counter(map(place, rows))
    compared = contradicted = 0.0
    for one, other in combinations(rows, 2):
        is_pair = place(one) == place(other) and value[one] != value[other]
        if is_pair and visit[one] // 4 != visit[other] // 4:
            compared += 2 / size[place(one)]
            contradicted += (outcome(one) != outcome(other)) * 2 / size[place(one)]
    assert found.compared[0] == pytest.approx(compared)
    assert found.contradicted[0] == pytest.approx(contradicted)


def test_echoes_are_where_the_action_before_stands(monkeypatch: pytest.MonkeyPatch):
    seen: list[Frame] = []

    def spied(
        parsed: Parsed, sample: SampledGroups, as_read: Callable[[Segment], Segment]
    ) -> Claims[Sequence[Frame]]:
        found = find_echoes(parsed, sample, as_read)
        seen.extend(frame for family in found.things for frame in family)
        return found

    monkeypatch.setattr("graphcredit.credit.merging.segments.noise.idle.learn.find_echoes", spied)
    merged(idle_worlds.terminal, 8)
    assert seen == [Frame("", (">",), (), 0)]


def test_a_lone_word_is_no_identifier_because_a_date_stands_alone_elsewhere():
    rules = SlotRules(
        is_noise={("between", "", "", ""): True, ("between", "", "#", ""): True},
        lengths={("between", "", "#", ""): frozenset({6})},
    )
    assert rules.apply(Segment("", ("bcda",))).tokens == ("bcda",)
    assert rules.apply(Segment("", ("#", "facade"))).tokens == ("#", SLOT)
    assert rules.apply(Segment("", ("#", "bed"))).tokens == ("#", "bed")


def test_escape_sequences_stand_where_they_stood_and_blanks_are_as_shown():
    line = "\x1b]0;game 1f\x07 #\x1b[31m #\x1b[0m  Red \x1b[1;32mdoor"
    assert tokenise(line) == (
        *("\x1b]0;game_1f\x07", " ", "#", "\x1b[31m", " ", "#", "\x1b[0m", "  ", "red"),
        *("\x1b[1;32m", "door"),
    )
    assert tokenise(" # #  Red door") == (" ", "#", " ", "#", "  ", "red", "door")


def test_words_left_out_in_a_row_leave_one_slot():
    rule = WordsLeftOut(frozenset({"dana", "north"}))
    assert rule.apply(Segment("", ("hi", "dana", "north", "!"))).tokens == ("hi", SLOT, "!")
    assert rule.apply(Segment("", ("hi", "!"))).tokens == ("hi", "!")


def test_an_action_that_always_makes_the_same_echo_does_not_depend_on_the_echo_before():
    """Eight trajectories of four actions, and another one, where a text repeats the last one."""
    taken = np.array([[0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]] * 2)
    taken = np.hstack([taken, np.full((8, 1), 2), np.full((8, 1), -1)])
    number, length = taken.shape
    trajectory = np.repeat(np.arange(number), length)
    index = np.tile(np.arange(length), number)
    room = np.zeros(number * length, np.int64)
    visits = Visits(
        node=np.arange(number * length),
        certain=np.arange(number * length),
        walked=np.arange(number * length),
        group=room,
        index=index,
        trajectory=trajectory,
        taken=taken.ravel(),
        is_valid=taken.ravel() >= 0,
        outcome=room,
        succeeds=room > 0,
    )
    visit = np.flatnonzero(index > 0)
    found = dependence_on(room[visit], 1, visit, taken.ravel()[visit - 1], room, visits)
    assert found.compared[0] > 0
    assert not found.matters[0]


def test_a_data_uri_holds_one_token():
    tokens = tokenise("![shot](data:image/png;base64,iVBOR/w0+KGgo==) then")
    assert tokens[-3:] == (";base64,ivbor/w0+kggo==", ")", "then")
    assert kind_of(tokens[-3]) == "base64"
