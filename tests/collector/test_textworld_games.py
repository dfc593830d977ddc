"""Which games a list names; TextWorld itself is not needed for that."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.collector.environments.textworld.games import (
    FAMILIES,
    Game,
    list_tasks,
    parse_game,
    world_of,
)
from graphcredit.store.errors import OptionError


def _specs(games: str | None, num_tasks: int, seed: int = 0) -> list[str]:
    return [task.spec for task in list_tasks(games, num_tasks=num_tasks, seed=seed)]


def test_families_take_turns_and_so_do_their_presets():
    assert _specs("coin,treasure", 5, seed=7) == [
        "coin-l205-s7",
        "treasure-l15-s7",
        "coin-l105-s8",
        "treasure-l12-s8",
        "coin-l205-s9",
    ]


def test_settings_without_a_seed_give_one_game_per_round():
    assert _specs("custom-r3o4q4", 3) == [f"custom-r3o4q4-s{seed}" for seed in range(3)]


def test_a_game_with_its_seed_is_one_task_however_many_are_asked_for():
    assert _specs("coin-l5-s4,coin-l5-s9", 16) == ["coin-l5-s4", "coin-l5-s9"]


def test_a_game_that_is_named_is_played_or_the_list_is_refused():
    assert _specs("coin-l5,coin-l5-s7", 2) == ["coin-l5-s0", "coin-l5-s7"]
    message = r"with 2 tasks, 2 would be left out, coin-l5-s4 the first\. Ask for more tasks"
    with pytest.raises(OptionError, match=message):
        _specs("coin-l5,coin-l7,coin-l5-s4,coin-l7-s4,coin-l5-s04", 2)
    with pytest.raises(OptionError, match="with 1 task, 1 would"):
        _specs("coin-l5-s4,coin-l5-s9", 1)


def test_no_game_is_named_twice():
    assert _specs("coin-l205,coin-l205-s1,coin", 4) == [
        "coin-l205-s0",
        "coin-l205-s1",
        "coin-l105-s1",
        "coin-l205-s2",
    ]


def test_a_game_has_one_name_however_its_settings_are_written():
    spelt = "custom-o5r5q5b1n1-s3,custom-r05o5q5b1n1-s03,custom-n1b1q5o5r5-s3"
    assert _specs(spelt, 16) == ["custom-r5o5q5b1n1-s3"]
    assert _specs("custom-r5o5q5b0n0-s3", 1) == ["custom-r5o5q5-s3"]
    assert _specs("cooking-g6k1t1o0r2", 1) == ["cooking-r2t1g6k1-s0"]


def test_a_world_is_the_same_if_only_something_else_is_told_of_it():
    assert {world_of(f"custom-r5o5q5{told}-s3") for told in ("", "b1", "n1", "b1n1", "n0b1")} == {
        "custom-r5o5q5-s3"
    }
    assert world_of("cooking-r1t1g6o1n1-s3") == "cooking-r1t1g6o1-s3"
    assert world_of("custom-r5o5q5-s4") == "custom-r5o5q5-s4"


@given(st.integers(1, 40), st.integers(0, 10**9))
def test_as_many_tasks_as_asked_for_all_different_and_the_same_each_time(count: int, seed: int):
    specs = _specs(None, count, seed)
    assert len(set(specs)) == count
    assert specs == _specs(None, count, seed)
    assert all(parse_game(spec).name == spec for spec in specs)
    assert {parse_game(spec).family for spec in specs} == set(list(FAMILIES)[:count])


def test_a_setting_that_is_left_out_has_its_default():
    game = parse_game("cooking-r2t1g6k1-s3")
    assert game == Game(family="cooking", settings="r2t1g6k1", seed=3)
    assert game.numbers == {"r": 2, "t": 1, "g": 6, "o": 0, "k": 1, "c": 0, "d": 0, "n": 0}


@pytest.mark.parametrize(
    ("games", "message"),
    [
        ("chess", r"named by a family \(custom, coin, treasure, cooking\).*got 'chess'"),
        ("coin,", "got ''"),
        ("coin-l301", r"l1…300 level; dead ends above 100, n.*each at most once: got 'l301'"),
        ("coin-l5l6", "each at most once: got 'l5l6'"),
        ("coin-r5", "got 'r5'"),
        ("custom-r5o5", "q1…50 actions of the quest"),
        ("cooking-r1t1g7", r"g1\|6\|9\|12 rooms"),
        ("coin-l5-s", "got 'coin-l5-s'"),
        ("coin-l5-s2147483648", r"from 0 to 2\^31 - 1: got 2147483648"),
    ],
)
def test_what_is_no_game_is_refused(games: str, message: str):
    with pytest.raises(OptionError, match=message):
        list_tasks(games, num_tasks=1, seed=0)


def test_a_task_needs_a_whole_name():
    with pytest.raises(OptionError, match=r"<family>-<settings>-s<seed>.*got 'coin-l5'"):
        parse_game("coin-l5")


def test_no_tasks_is_refused():
    with pytest.raises(OptionError, match="1 or more: got 0"):
        list_tasks("coin", num_tasks=0, seed=0)


def test_a_seed_that_no_generator_takes_is_refused():
    with pytest.raises(OptionError, match="got -1"):
        list_tasks("coin", num_tasks=1, seed=-1)
