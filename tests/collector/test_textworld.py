"""TextWorld as an environment: what identifies a state, what ends a game, what the plan says."""

import random
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest

from graphcredit.collector.environments.base import Environment, Observation, Transition, replay
from graphcredit.collector.environments.prefix_cache import Environments
from graphcredit.collector.environments.registry import environment_kind
from graphcredit.collector.environments.textworld.games import parse_game
from graphcredit.store.errors import OptionError
from tests.examples import nightly

pytestmark = pytest.mark.play

TREE = "coin-l105-s1"
LOOPS = "treasure-l15-s2"
QUEST = "custom-r5o5q4-s2"
MEAL = "cooking-r1t1g1-s3"

OPPOSITE = {"go north": "go south", "go south": "go north", "go east": "go west"} | {
    "go west": "go east"
}


def _open(spec: str, games_dir: Path, *, with_oracle: bool = True):
    return closing(environment_kind("textworld").open(spec, games_dir, with_oracle))


def _win(environment) -> Iterator[tuple[Observation, Transition]]:
    before = environment.reset()
    while before.oracle_actions:
        done = environment.step(before.oracle_actions[0])
        yield before, done
        before = done.observation


@pytest.mark.one_in(3, others="nightly")
@pytest.mark.parametrize("spec", [TREE, LOOPS, QUEST])
def test_walking_away_and_back_ends_in_the_state_it_began_in(spec: str, games_dir: Path):
    with _open(spec, games_dir) as environment:
        start = environment.reset()
        away = next(action for action in start.admissible_actions if action in OPPOSITE)
        there = environment.step(away)
        back = environment.step(OPPOSITE[away])
    assert there.observation.state != start.state
    assert back.observation.state == start.state
    assert back.observation.admissible_actions == start.admissible_actions
    assert back.observation.oracle_distance == start.oracle_distance


@pytest.mark.one_in(4, others="nightly")
@pytest.mark.parametrize("spec", [TREE, LOOPS, QUEST, MEAL])
def test_looking_around_changes_nothing(spec: str, games_dir: Path):
    with _open(spec, games_dir) as environment:
        start = environment.reset()
        for action in ("look", "inventory"):
            looked = environment.step(action)
            assert looked.is_action_valid
            assert looked.observation.state == start.state


@pytest.mark.one_in(4, others="nightly")
@pytest.mark.parametrize("spec", [TREE, LOOPS, QUEST, MEAL])
def test_the_plan_wins_and_comes_one_step_closer_each_time(spec: str, games_dir: Path):
    with _open(spec, games_dir) as environment:
        steps = list(_win(environment))
    distances = [before.oracle_distance for before, _ in steps]
    assert distances == list(range(len(steps), 0, -1))
    last = steps[-1][1]
    assert (last.terminated, last.success, last.observation.oracle_distance) == (True, True, 0.0)
    assert last.observation.oracle_actions == ()
    assert not any(done.terminated or done.success for _, done in steps[:-1])
    assert all(done.is_action_valid and done.cost == 1.0 for _, done in steps)


def test_the_reward_is_the_gain_in_score(games_dir: Path):
    with _open(TREE, games_dir) as environment:
        rewards = [done.reward for _, done in _win(environment)]
    assert rewards == [0.0, 0.0, 0.0, 0.0, 1.0]


@pytest.mark.slow
def test_each_point_of_a_meal_is_a_reward(games_dir: Path):
    with _open(MEAL, games_dir) as environment:
        rewards = [done.reward for _, done in _win(environment)]
    # taking the ingredient, preparing the meal and eating it score one point each
    assert sorted(rewards)[-3:] == [1.0, 1.0, 1.0]
    assert sum(rewards) == 3.0


def test_a_refused_action_is_not_valid_and_changes_nothing(games_dir: Path):
    with _open(TREE, games_dir) as environment:
        start = environment.reset()
        wall = next(way for way in OPPOSITE if way not in start.admissible_actions)
        for action in ("dance", "take the moon", "go nowhere", wall, ""):
            refused = environment.step(action)
            assert not refused.is_action_valid
            assert not refused.terminated
            assert refused.reward == 0.0
            assert refused.observation.state == start.state
            assert refused.observation.oracle_actions == start.oracle_actions


ORDERS = ["\\d", "\\help", "%s", "quit", "save", "script", "undo", "restart", "", " "]
ORDERS += ["look\nsave", "go north. save", "look Then quit", "x" * 500, "look " * 30, "look \x00"]


@pytest.mark.parametrize("order", ORDERS)
def test_an_order_to_the_interpreter_never_reaches_it(
    order: str, games_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    with _open(TREE, games_dir.resolve()) as environment:
        start = environment.reset()
        refused = environment.step(order)
        said = "You can't do that." if "Then" in order else "That's not a verb I recognise."
        assert refused.observation.text.endswith(f"\n{said}")
        assert refused == Transition(
            observation=replace(start, text=refused.observation.text),
            reward=0.0,
            cost=1.0,
            is_action_valid=False,
            terminated=False,
            success=False,
        )
        done = environment.step(start.oracle_actions[0])
    assert done.is_action_valid
    assert done.observation.oracle_distance == start.oracle_distance - 1
    assert list(tmp_path.iterdir()) == []


DOORS = "custom-r5o5q5b1n1-s3"


@pytest.mark.slow
def test_a_way_that_textworld_does_not_notice_is_not_taken(games_dir: Path):
    with _open(DOORS, games_dir, with_oracle=False) as environment:
        before = replay(environment, ["go north"])
        for wording in ("go door", "go open door"):
            refused = environment.step(wording)
            assert not refused.is_action_valid
            assert refused.observation.state == before.state
            assert refused.observation.admissible_actions == before.admissible_actions
        after = environment.step("go south")
        assert after.observation == replay(environment, ["go north", "go south"])


CHESTS = "custom-r5o5q5b1n1-s28"
"""A game with a "chest" and a "Microsoft limited edition chest"."""


@pytest.mark.slow
def test_the_next_command_is_not_taken_for_the_answer_to_a_question(games_dir: Path):
    way = [
        "go east",
        "open Microsoft limited edition chest",
        "take keycard from Microsoft limited edition chest",
    ]
    with _open(CHESTS, games_dir, with_oracle=False) as environment:
        replay(environment, way)
        asked = environment.step("unlock chest with passkey")
        assert not asked.is_action_valid
        assert asked.observation.text.endswith("the chest or the Microsoft limited edition chest?")
        after = environment.step("unlock chest with keycard")
        assert after.is_action_valid
        assert after.observation == replay(environment, [*way, "unlock chest with keycard"])


@pytest.mark.slow
def test_a_word_for_what_was_spoken_of_before_is_not_understood(games_dir: Path):
    with _open(CHESTS, games_dir, with_oracle=False) as environment:
        for action in ("take it", "drop them", "open IT"):
            start = environment.reset()
            refused = environment.step(action)
            assert not refused.is_action_valid
            assert refused.observation.state == start.state
            assert refused.observation.text.endswith("You can't do that.")


@pytest.mark.slow
@pytest.mark.parametrize("spec", [CHESTS, DOORS, MEAL])
@pytest.mark.parametrize("seed", [0, nightly(5), nightly(11)])
def test_what_is_refused_leaves_no_trace(spec: str, seed: int, games_dir: Path):
    random_source = random.Random(seed)
    verbs: set[str] = set()
    words: set[str] = set()
    num_refused = 0
    with (
        _open(spec, games_dir, with_oracle=False) as all_of_it,
        _open(spec, games_dir, with_oracle=False) as valid_alone,
    ):
        here = all_of_it.reset()
        assert valid_alone.reset() == here
        for _ in range(25):
            for verb, *others in map(str.split, here.admissible_actions):
                verbs.add(verb)
                words.update(others)
            length = random_source.randint(1, min(4, len(words)))
            verb = random_source.choice(sorted(verbs))
            garbled = " ".join([verb, *random_source.sample(sorted(words), length)])
            action = random_source.choice([random_source.choice(here.admissible_actions), garbled])
            done = all_of_it.step(action)
            here = done.observation
            if done.is_action_valid:
                assert valid_alone.step(action) == done
            num_refused += not done.is_action_valid
            if done.terminated:
                break
    assert num_refused > 0


def test_another_wording_of_an_admissible_action_is_valid(games_dir: Path):
    with _open(TREE, games_dir) as environment:
        start = environment.reset()
        away = next(action for action in start.admissible_actions if action in OPPOSITE)
        short = environment.step(away.removeprefix("go "))
        assert away.removeprefix("go ") not in start.admissible_actions
        assert short.is_action_valid
        assert short.observation.state == replay(environment, [away]).state


@pytest.mark.slow
def test_a_lost_game_is_over_without_success_and_without_a_plan(games_dir: Path):
    with _open(LOOPS, games_dir) as environment:
        lost = _lose(environment)
    assert lost.terminated
    assert lost.reward == 0.0
    assert lost.observation.oracle_actions is None
    assert lost.observation.oracle_distance is None


def test_the_text_is_the_task_and_what_the_game_said_without_its_counters(games_dir: Path):
    with _open(TREE, games_dir) as environment:
        start = environment.reset()
        looked = environment.step("inventory").observation
    assert start.text is not None
    assert looked.text is not None
    task, *said = looked.text.splitlines()
    assert task.startswith("Task: ")
    assert "coin" in task
    assert said == ["You are carrying nothing."]
    assert start.text.startswith(task + "\n-= ")
    for text in (start.text, start.state, looked.text, looked.state):
        assert "$$" not in text
        assert "=-0/" not in text
        assert ">" not in text
        assert "  " not in text
        assert "\n\n" not in text


@pytest.mark.slow
def test_a_game_without_looking_lists_the_same_actions_less_those_that_only_look(games_dir: Path):
    with _open(QUEST, games_dir) as whole, _open("custom-r5o5q4n1-s2", games_dir) as lookless:
        listed = whole.reset().admissible_actions
        kept = lookless.reset().admissible_actions
    looks = {a for a in listed if a in ("look", "inventory") or a.startswith("examine ")}
    assert {"look", "inventory"} < looks
    assert kept == tuple(action for action in listed if action not in looks)


@pytest.mark.slow
def test_a_task_that_is_told_briefly_is_the_last_action_of_the_same_quest(games_dir: Path):
    with _open(QUEST, games_dir) as told, _open("custom-r5o5q4b1-s2", games_dir) as brief:
        whole, short = told.reset(), brief.reset()
    assert short.oracle_actions == whole.oracle_actions
    assert short.state == whole.state
    last = "the plant from the mantelpiece"
    assert last in whole.task
    assert "unlock the portal" in whole.task
    assert last in short.task
    assert "portal" not in short.task


def test_without_the_oracle_there_is_no_plan_and_the_game_is_the_same(games_dir: Path):
    with _open(TREE, games_dir) as environment:
        plan = environment.reset().oracle_actions
        with_plan = [environment.step(action) for action in plan]
    with _open(TREE, games_dir, with_oracle=False) as environment:
        assert environment.reset().oracle_distance is None
        without = [environment.step(action) for action in plan]
    assert [done.observation.state for done in without] == [
        done.observation.state for done in with_plan
    ]
    assert without[-1].success
    assert without[-1].observation.oracle_actions is None


@pytest.mark.slow
def test_the_plan_is_a_shortest_one_from_everywhere_in_a_game_with_loops(games_dir: Path):
    with _open(LOOPS, games_dir) as environment:
        start = environment.reset()
        shortest = _shortest_distances(environment._game.state.game)
        for seed in range(8):
            rng = random.Random(seed)
            observation, over = environment.reset(), False
            while not over and rng.random() > 0.05:
                facts = frozenset(environment._game.state["_facts"])
                assert observation.oracle_distance == shortest.get(facts)
                done = environment.step(rng.choice(observation.admissible_actions))
                observation, over = done.observation, done.terminated
    assert start.oracle_distance == 4.0  # the quest walks six steps, around a loop
    assert len(shortest) > 30


@pytest.mark.one_in(4, others="nightly")
@pytest.mark.parametrize("spec", [TREE, LOOPS, QUEST, MEAL])
def test_what_is_remembered_of_a_game_is_what_the_game_does(spec: str, games_dir: Path):
    kind = environment_kind("textworld")
    num_asked = num_steps = 0

    def opened() -> Environment:
        environment = kind.open(spec, games_dir, False)
        ask = environment.step

        def counted(action: str) -> Transition:
            nonlocal num_asked
            num_asked += 1
            return ask(action)

        vars(environment)["step"] = counted
        return environment

    with (
        closing(Environments()) as environments,
        closing(kind.open(spec, games_dir, False)) as game,
    ):
        for seed in range(25):
            rng = random.Random(seed)
            here = game.reset()
            with closing(environments.enter(spec, opened)) as remembered:
                assert remembered.reset() == here
                for _ in range(20):
                    action = rng.choice((*(here.admissible_actions or ()), "fly", "open door"))
                    done = game.step(action)
                    assert remembered.step(action) == done
                    here = done.observation
                    num_steps += 1
                    if done.terminated:
                        break
    assert num_asked < num_steps


@pytest.mark.slow
def test_a_game_is_made_once_by_any_number_of_processes(tmp_path: Path):
    from graphcredit.collector.environments.textworld.make_games import game_file

    context = get_context("spawn")
    makers = [context.Process(target=game_file, args=(parse_game(TREE), tmp_path)) for _ in "ab"]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert [maker.exitcode for maker in makers] == [0, 0]
    path = game_file(parse_game(TREE), tmp_path)
    assert sorted(p.name for p in path.parent.iterdir()) == [f"{TREE}.json", f"{TREE}.z8"]
    made_at = path.stat().st_mtime_ns
    assert game_file(parse_game(TREE), tmp_path) == path
    assert path.stat().st_mtime_ns == made_at


@pytest.mark.slow
def test_a_seed_without_a_quest_gives_way_to_another_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from graphcredit.collector.environments.textworld import make_games

    build = make_games._build

    def only_above_a_million(game, options):
        if sum(options.seeds.values()) == seeds_of_the_name:
            raise make_games.QuestGenerationError
        return build(game, options)

    options = make_games.textworld.GameOptions()
    options.seeds = 1
    seeds_of_the_name = sum(options.seeds.values())
    monkeypatch.setattr(make_games, "_build", only_above_a_million)
    for _ in range(2):  # made, then found in the cache
        with _open(TREE, tmp_path) as environment:
            assert environment.note == (
                f"{TREE}: seed 1 has no such quest, so it was generated from seed 1000001"
            )


def test_settings_that_no_seed_can_meet_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from graphcredit.collector.environments.textworld import make_games

    def never(game, options):
        raise make_games.QuestGenerationError

    monkeypatch.setattr(make_games, "_build", never)
    with pytest.raises(OptionError, match="coin-l105: none of 20 seeds from 1 on has one"):
        make_games.game_file(parse_game(TREE), tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def _lose(environment) -> Transition:
    """Play at random until a game is lost."""
    for seed in range(50):
        rng = random.Random(seed)
        observation = environment.reset()
        for _ in range(40):
            done = environment.step(rng.choice(observation.admissible_actions))
            observation = done.observation
            if done.terminated and not done.success:
                return done
            if done.terminated:
                break
    pytest.fail("no game was lost")


def _shortest_distances(game) -> dict[frozenset, int]:
    """Return the shortest win from every state that has one, by TextWorld's own logic."""
    from textworld.generator.game import GameProgression

    start = GameProgression(game)
    seen = {frozenset(start.state.facts): start}
    came_from: dict[frozenset, list[frozenset]] = {}
    queue = deque(seen)
    while queue:
        facts = queue.popleft()
        for action in () if seen[facts].done else seen[facts].valid_actions:
            after = seen[facts].copy()
            after.update(action)
            reached = frozenset(after.state.facts)
            came_from.setdefault(reached, []).append(facts)
            if reached not in seen:
                seen[reached] = after
                queue.append(reached)
    distances = {facts: 0 for facts, world in seen.items() if world.completed}
    queue = deque(distances)
    while queue:
        facts = queue.popleft()
        for before in came_from.get(facts, ()):
            if before not in distances:
                distances[before] = distances[facts] + 1
                queue.append(before)
    return distances
