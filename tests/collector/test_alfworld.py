"""ALFWorld's environment on a tiny game written by hand, and on the published ones."""

import os
import random
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from graphcredit.collector.environments.alfworld.environment import open_alfworld
from graphcredit.collector.environments.alfworld.games import TYPES, list_tasks
from graphcredit.collector.environments.alfworld.process import ENGINES
from graphcredit.collector.environments.base import Environment, Observation, replay
from graphcredit.collector.policies.base import PolicyView
from graphcredit.collector.policies.language.prompts import load_template, render
from graphcredit.store.errors import UnplayableError
from tests.collector.household import DOMAIN, GRAMMAR, PROBLEM, write_file, write_game
from tests.examples import nightly

pytest.importorskip(
    "fast_downward", reason="the planner is missing: pip install 'graphcredit[alfworld]'"
)
needs_games = pytest.mark.skipif(
    "ALFWORLD_DATA" not in os.environ,
    reason="the published games are missing: set ALFWORLD_DATA to what alfworld-download fetched",
)

START = """
atlocation: agent1 - loc 3
inreceptacle: cup 1 - shelf 1, pen 1 - shelf 1
""".strip()
PLAN = ("go to shelf 1", "take pen 1 from shelf 1", "go to box 1", "open box 1")


@contextmanager
def opened(data: Path, spec: str, *, with_oracle: bool = True) -> Generator[Environment]:
    environment = open_alfworld(spec, data, with_oracle)
    try:
        yield environment
    finally:
        environment.close()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Generator[Environment]:
    """Return the tiny game, open for all tests of the module: it starts in a second."""
    data = tmp_path_factory.mktemp("data")
    with opened(data, write_game(data)) as environment:
        yield environment


def test_the_first_observation_has_the_facts_the_words_and_a_plan(tiny: Environment):
    first = tiny.reset()
    assert first.state == START
    assert first.text == "A room.\n\nYour task is to: put a pen in the box."
    assert first.task == "put a pen in the box."
    assert first.admissible_actions == ("go to box 1", "go to shelf 1", "look")
    assert first.oracle_actions == (*PLAN, "put pen 1 in/on box 1")
    assert first.oracle_distance == 5.0


def test_an_action_changes_the_facts_and_is_answered_in_words(tiny: Environment):
    seen = replay(tiny, PLAN)
    assert seen.text == "You open the box 1."
    assert seen.state.splitlines() == [
        "atlocation: agent1 - loc 1",
        "holds: agent1 - pen 1",
        "holdsany: agent1",
        "inreceptacle: cup 1 - shelf 1",
        "opened: box 1",
    ]
    assert seen.admissible_actions == ("go to shelf 1", "look", "put pen 1 in/on box 1")
    assert seen.oracle_actions == ("put pen 1 in/on box 1",)


def test_reaching_the_goal_wins(tiny: Environment):
    replay(tiny, PLAN)
    done = tiny.step("put pen 1 in/on box 1")
    assert (done.reward, done.terminated, done.success, done.cost) == (1.0, True, True, 1.0)
    won = done.observation
    assert (won.oracle_actions, won.oracle_distance, won.admissible_actions) == ((), 0.0, ())


def test_the_plan_puts_down_what_is_in_the_way(tiny: Environment):
    """The planner is told of the cup only while it is carried."""
    seen = replay(tiny, ("go to shelf 1", "take cup 1 from shelf 1"))
    assert seen.oracle_actions == ("put cup 1 in/on shelf 1", *PLAN[1:], "put pen 1 in/on box 1")


@pytest.mark.parametrize("action", ["", "dance", "open box 1", "take pen 1 from shelf 1", '"\n'])
def test_what_is_not_admissible_is_refused_and_changes_nothing(tiny: Environment, action: str):
    first = tiny.reset()
    done = tiny.step(action)
    assert (done.is_action_valid, done.reward, done.terminated) == (False, 0.0, False)
    assert done.observation == replace(first, text="Nothing happens.")
    after = tiny.step("go to shelf 1")
    assert (after.is_action_valid, after.observation.text) == (True, "You arrive at shelf 1.")


def test_blanks_around_and_within_an_action_are_no_matter(tiny: Environment):
    tiny.reset()
    assert tiny.step(" go  to shelf 1\n").is_action_valid


def test_looking_leaves_the_state_as_it_is(tiny: Environment):
    first = tiny.reset()
    done = tiny.step("look")
    assert done.is_action_valid
    assert done.observation.text == "You look around."
    assert done.observation.state == first.state


def test_two_ways_to_one_place_end_in_one_state(tiny: Environment):
    there = replay(tiny, ("go to box 1", "go to shelf 1"))
    back = replay(tiny, ("go to box 1", "go to box 1", "look", "go to shelf 1"))
    assert back == there
    assert replay(tiny, ("go to box 1",)).state != there.state


def test_without_an_oracle_there_is_no_plan(tmp_path: Path):
    with opened(tmp_path, write_game(tmp_path), with_oracle=False) as environment:
        first = environment.reset()
    assert (first.oracle_actions, first.oracle_distance) == (None, None)


def test_environments_of_one_game_do_not_disturb_each_other(tmp_path: Path):
    spec = write_game(tmp_path)
    with opened(tmp_path, spec) as one, opened(tmp_path, spec) as other:
        one.reset()
        one.step("go to shelf 1")
        assert other.reset().state == START
        other.step("go to box 1")
        assert one.step("take cup 1 from shelf 1").is_action_valid
        assert other.step("open box 1").is_action_valid


@pytest.mark.slow
def test_a_game_whose_process_was_ended_goes_on_in_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("graphcredit.collector.environments.alfworld.process.MAX_ENGINES", 1)
    specs = [write_game(tmp_path), write_game(tmp_path, "pick_and_place_simple-Pen-None-Box-2")]
    with opened(tmp_path, specs[0]) as first, opened(tmp_path, specs[1]) as second:
        first.reset()
        first.step("go to shelf 1")
        second.reset()
        assert len(ENGINES.running) == 1
        assert first.step("take cup 1 from shelf 1").observation.text == (
            "You pick up the cup 1 from the shelf 1."
        )


BROKEN = {
    "no JSON": ("{broken", "must be a JSON file"),
    "no object": ("[]", "must be a JSON object: .* is a list"),
    "a field is missing": ({"grammar": None}, "a game must have the field grammar"),
    "the planner exits": (
        {"pddl_problem": PROBLEM.replace("PenType - otype", "PenType - otype PenType - otype")},
        r"its process ended with exit code [1-9]\d*, and said last: .*duplicate object",
    ),
    "no grammar": ({"grammar": GRAMMAR[:-30]}, "cannot be played: .*"),
    "a rule about what was looked at": (
        {"pddl_domain": DOMAIN.replace("(and (openable ?r)", "(and (checked ?r) (openable ?r)")},
        "nothing in a game may depend on 'checked'",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", BROKEN)
def test_a_game_that_cannot_be_loaded_is_named_with_the_reason(tmp_path: Path, what: str):
    content, message = BROKEN[what]
    task = "pick_and_place_simple-Pen-None-Box-1"
    if isinstance(content, str):
        spec = write_file(tmp_path, task, content)
    else:
        spec = write_game(tmp_path, task, **content)
    with opened(tmp_path, spec) as environment:
        with pytest.raises(UnplayableError, match=message) as refusal:
            environment.reset()
        assert spec in str(refusal.value)
        # It is not tried again.
        with pytest.raises(UnplayableError, match=message):
            environment.reset()


@pytest.mark.slow
def test_a_game_that_dies_while_it_is_played_is_named(tmp_path: Path):
    with opened(tmp_path, write_game(tmp_path)) as environment:
        environment.reset()
        *_, process = ENGINES.running.values()
        process._process._process.kill()
        with pytest.raises(UnplayableError, match="ended with exit code -9"):
            environment.step("look")


def test_a_language_model_sees_the_words_and_the_actions(tiny: Environment):
    messages = render(load_template("alfworld"), PolicyView(observation=tiny.reset()))
    told = messages[-1]["content"]
    assert "Task: put a pen in the box.\n" in told
    assert "Now:\nA room." in told
    assert "You can do:\n- go to box 1\n- go to shelf 1\n- look\n" in told
    assert "atlocation" not in told


@needs_games
@pytest.mark.slow
@pytest.mark.parametrize("kind", [TYPES[0], *map(nightly, TYPES[1:])])
def test_the_plan_of_a_published_game_wins_and_gets_shorter_by_one(kind: str):
    (task,) = list_tasks(f"valid_seen:{kind}", num_tasks=1, seed=1)
    with opened(Path(), task.spec) as environment:
        seen = environment.reset()
        assert seen.task
        distances = [seen.oracle_distance]
        while seen.oracle_actions:
            done = environment.step(seen.oracle_actions[0])
            seen = done.observation
            distances.append(seen.oracle_distance)
        assert done.success
    assert distances == [float(n) for n in reversed(range(len(distances)))]


@needs_games
@pytest.mark.slow
def test_a_thing_that_fits_nowhere_is_a_dead_end_once_it_is_taken():
    """The teddy bear of this bedroom can be taken from the bed, and put on nothing."""
    (task,) = list_tasks(
        "valid_seen/look_at_obj_in_light-Pillow-None-DeskLamp-302", num_tasks=1, seed=0
    )
    with opened(Path(), task.spec) as environment:
        assert replay(environment, ["go to bed 1"]).oracle_distance == 3.0
        lost = environment.step("take teddybear 1 from bed 1")
    assert (lost.is_action_valid, lost.terminated) == (True, False)
    assert (lost.observation.oracle_actions, lost.observation.oracle_distance) == (None, None)


@needs_games
@pytest.mark.slow
def test_a_published_game_is_the_same_in_another_process():
    (task,) = list_tasks("valid_seen:pick_heat_then_place_in_recep", num_tasks=1, seed=0)
    with opened(Path(), task.spec) as environment:
        walk = _walk(environment, random.Random(0), 20)
    with opened(Path(), task.spec) as environment:
        assert _walk(environment, random.Random(0), 20) == walk
    assert len({seen.state for seen in walk}) > 5


def _walk(environment: Environment, rng: random.Random, length: int) -> list[Observation]:
    seen = [environment.reset()]
    for _ in range(length):
        action = rng.choice(seen[-1].admissible_actions or ())
        seen.append(environment.step(action).observation)
    return seen
