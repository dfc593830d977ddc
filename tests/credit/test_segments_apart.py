"""Texts of two states that `segments` never unites, whatever they have in common."""

import json
import random
from collections.abc import Mapping
from typing import Any

import pytest

from benchmarks.noise.disturb import Disturb, VisitRandom, disturb_steps
from graphcredit.credit.iteration.assemble import assemble
from graphcredit.credit.merging.merger import open_merger
from graphcredit.credit.merging.table import MergeSettings
from tests.credit import trap_worlds
from tests.credit.lamp_world import lamp_world
from tests.worlds import step_table, trajectory

Rows = list[dict[str, Any]]


def merged(rows: Rows, noise: Disturb | None = None) -> list[int]:
    """Return the node of each step, in the order of task, trajectory and index."""
    table = step_table(rows)
    if noise:
        table = disturb_steps(table, noise, 0)
    merger = open_merger(MergeSettings(merge="segments")).learn([table])
    return assemble(table, merger=merger).batch.state_of_step.tolist()


def assert_apart(nodes: list[int], states: list[str]) -> None:
    """Assert that no node has two states."""
    assert len(set(zip(nodes, states, strict=True))) == len(set(nodes))


_ASKS = (
    "I need some help with changing my {}, please.",
    "I was hoping to adjust my {} a bit, if that is possible.",
    "I'd like to make a change to the {} that I have.",
    "I have a {} and I want to move it to a later day.",
)
_ANSWERS = (
    "Could you then tell me what it would cost to keep the {}?",
    "My reservation ids are 4WQ15{}0 and 60RX9{}.",
    "I'd like to cancel the {} if you can not change it.",
    "Option {}, please.",
    "Yes, {} bags.",
)
_CLOSINGS = ("Thank you for your help today.", "That is all that I wanted to know.", "###STOP###")
_THINGS = ("flight", "ticket", "seat", "refund", "voucher", "booking", "invoice", "meal", "2", "3")


@pytest.mark.parametrize("between", [" ", "\n"])
@pytest.mark.parametrize("num_tasks", [12, 40])
def test_turns_of_users_stay_apart_though_they_close_in_one_sentence(between: str, num_tasks: int):
    rows: Rows = []
    for task in range(num_tasks):
        rng = random.Random(task)

        def turn(texts: tuple[str, ...], rng: random.Random = rng) -> str:
            thing = rng.choice(_THINGS)
            closing = rng.choice(_CLOSINGS)
            return f"{rng.choice(texts).format(thing, thing)}{between}{closing}"

        for number in range(4):
            path = [turn(_ASKS)]
            for _ in range(5):
                path += [rng.choice(("ask", "look up", "explain")), turn(_ANSWERS)]
            rows += trajectory(f"{task:02}-{number}", path, task_id=f"t{task:02}")
    states = [f"{row['task_id']} {row['state']}" for row in rows]
    assert_apart(merged(rows), states)


def test_adverts_are_noise_though_some_were_never_seen_to_come_and_go():
    adverts = ("Buy one {} and get one free!", "Our best {} is now half the price!")
    texts = [text.format(thing) for text in adverts for thing in _THINGS[:8]]
    rows: Rows = []
    for task in range(12):
        rng = random.Random(task)
        for number in range(4):
            path: list[str] = []
            for room in ("A kitchen with a long table.", "A dark cellar.", "A garden with a pond."):
                beside = rng.choice(texts) if rng.random() < 0.5 else ""
                path += [f"{room}\nThe door is open.\n{beside}".strip(), "go on"]
            rows += trajectory(f"{task:02}-{number}", path[:-1], task_id=f"t{task:02}")
    assert len(set(merged(rows))) == 12 * 2


def _metered(text: str, rng: VisitRandom, index: int) -> str:
    return f"{text}\nHP {rng.randrange(20, 40)} of 40. Battery {99 - 2 * index} %"


def _said(text: str, rng: VisitRandom, index: int) -> str:
    return text.replace("You are in", rng.choice(("You are in", "This is", "You stand in")))


def _mistyped(text: str, rng: VisitRandom, index: int) -> str:
    words = text.split(" ")
    at = rng.randrange(len(words))
    if len(words[at]) > 4 and rng.random() < 0.3:
        words[at] = words[at][:2] + words[at][3] + words[at][2] + words[at][4:]
    return " ".join(words)


def _enveloped(text: str, rng: VisitRandom, index: int) -> str:
    return f'{{"ms": {rng.random()}, "text": {json.dumps(text)}, "id": "{rng.getrandbits(40):x}"}}'


@pytest.mark.parametrize("flicker", [0.0, 0.2])
@pytest.mark.parametrize("noise", [_metered, _said, _mistyped, _enveloped])
def test_states_that_differ_in_a_word_are_two_whatever_the_noise(noise: Disturb, flicker: float):
    """Also where the lamp goes on and off by itself, so that no class is certainly one state."""
    rows, states = lamp_world(flicker)
    nodes = merged(rows, noise)
    assert_apart(nodes, states)
    if noise in (_metered, _enveloped) and not flicker:
        assert len(set(nodes)) == len(set(states))


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("num_groups", [4, 16])
@pytest.mark.parametrize("world", ["boiler_sound", "museum_guide", "slow_page", "lock_panel"])
def test_what_matters_is_kept(world: str, num_groups: int, seed: int):
    rows = getattr(trap_worlds, world)(seed, num_groups, 8)
    rows.sort(key=lambda row: (row["task_id"], row["trajectory_id"], row["step_index"]))
    states = [f"{row['task_id']} {row.pop('true_state')}" for row in rows]
    assert_apart(merged(rows), states)


def _slips(moves: int, rng: random.Random, at: int) -> int:
    return (at + moves + rng.choice((0, 0, 1))) % 12


def _hops(moves: int, rng: random.Random, at: int) -> int:
    return rng.randrange(12)


@pytest.mark.parametrize("move", [_slips, _hops])
def test_a_number_that_is_all_of_a_state_stays_though_chance_moves_it(move: Any):
    rows: Rows = []
    for task in range(16):
        for number in range(8):
            rng, at, path = random.Random(f"{task} {number}"), 0, ["You stand on field 0."]
            for _ in range(10):
                action = rng.choice(("on", "far on"))
                at = move(1 + (action == "far on"), rng, at)
                path += [action, f"You stand on field {at}."]
            rows += trajectory(f"{task:02}-{number}", path, task_id=f"t{task:02}")
    assert_apart(merged(rows), [f"{row['task_id']} {row['state']}" for row in rows])


def test_a_question_is_not_known_by_its_number_alone():
    """Every step leads to the next page, whatever is done: only its number tells pages apart."""
    rows: Rows = []
    for task in range(8):
        for number in range(8):
            rng, path = random.Random(f"{task} {number}"), ["Page 1"]
            for page in range(2, 12):
                path += [rng.choice("abc"), f"Page {page}"]
            rows += trajectory(f"{task}-{number}", path, task_id=f"t{task}")
    assert_apart(merged(rows), [f"{row['task_id']} {row['state']}" for row in rows])


def fuel_world(name: str) -> Rows:
    """Return steps along a road; a drive is refused where the gauge shows less than it needs."""
    rows: Rows = []
    for task in range(16):
        for number in range(8):
            rng = random.Random(f"{name} {task} {number}")
            at, gauge = 0, rng.randrange(20)
            path = [f"Mile {at}. The road goes on.\nGauge: {gauge}"]
            for _ in range(10):
                at += gauge >= 8
                gauge = rng.randrange(20)
                path += ["drive", f"Mile {at}. The road goes on.\nGauge: {gauge}"]
            rows += trajectory(f"{task:02}-{number}", path, task_id=f"t{task:02}")
    return rows


def test_a_gauge_on_which_it_depends_what_an_action_does_is_kept():
    rows = fuel_world("fuel")
    assert_apart(merged(rows), [f"{row['task_id']} {row['state']}" for row in rows])


def test_a_gauge_that_only_falls_is_kept_where_the_policy_goes_by_it():
    """It runs like a clock, but who has used much of it runs: `guides` alone keeps it."""
    rows: Rows = []
    for task in range(16):
        for number in range(8):
            rng, path, fuel = random.Random(f"0 {task} {number}"), list[str](), 99
            for room, enough in zip("abcdefgh", range(93, 45, -6), strict=True):
                fuel -= rng.randrange(1, 12)
                pace = "walk" if fuel >= enough else "run"
                path += [f"Room {room}. A hall.\nFuel: {fuel} %", pace]
            rows += trajectory(f"{task:02}-{number}", [*path, "The end."], task_id=f"t{task:02}")
    assert_apart(merged(rows), [f"{row['task_id']} {row['state']}" for row in rows])


def test_a_level_that_wanders_is_kept_where_actions_move_it_or_little_was_seen():
    """Nothing else ever depends on it."""

    def world(num_tasks: int, moves: Mapping[str, tuple[int, int]]) -> Rows:
        rows: Rows = []
        for task in range(num_tasks):
            for number in range(8):
                rng, path = random.Random(f"{task} {number}"), list[str]()
                level = rng.randrange(40, 60)
                for step in range(12):
                    path += [f"Camp {step // 2}. Tents.\nFood: {level}", rng.choice(list(moves))]
                    level += rng.randint(*moves[path[-1]])
                rows += trajectory(f"{task:02}-{number}", path[:-1], task_id=f"t{task:02}")
        return rows

    for rows in (
        world(12, {"eat": (-3, 0), "hunt": (0, 3)}),
        world(4, {f"try {number}": (-1, 1) for number in range(30)}),
    ):
        assert_apart(merged(rows), [f"{row['task_id']} {row['state']}" for row in rows])
    rows = world(12, {"eat": (-1, 1), "hunt": (-1, 1)})
    assert len(set(merged(rows))) == 12 * 6


def test_a_code_that_actions_name_is_kept_though_nothing_else_depends_on_it():
    rows: Rows = []
    for task in range(16):
        for number in range(8):
            rng, path = random.Random(f"{task} {number}"), list[str]()
            for room in "abcdef":
                code = f"{rng.getrandbits(40):x}"
                path += [f"Room {room}. A lock.\nCode: {code}", f"enter {code}"]
            rows += trajectory(f"{task:02}-{number}", [*path, "The end."], task_id=f"t{task:02}")
    assert_apart(merged(rows), [f"{row['task_id']} {row['state']}" for row in rows])
