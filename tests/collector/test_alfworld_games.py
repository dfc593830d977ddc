"""The names of ALFWorld's games, and what of a planning problem the planner is given."""

from pathlib import Path

import pytest

from graphcredit.collector.environments.alfworld.games import game_file, list_tasks
from graphcredit.collector.environments.alfworld.names import shown_names
from graphcredit.collector.environments.alfworld.problem import Problem
from graphcredit.store.errors import OptionError
from tests.collector.household import write_file

PLACE = "pick_and_place_simple-Pen-None-Desk-{}"
LOOK = "look_at_obj_in_light-Pen-None-DeskLamp-{}"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return data with three places and two looks to play, and four games to leave out."""
    for number in (1, 2, 3):
        write_file(tmp_path, PLACE.format(number), '{"solvable": true}')
    for number in (1, 2):
        write_file(tmp_path, LOOK.format(number), '{"solvable": true}')
    write_file(tmp_path, PLACE.format(9), '{"solvable": true}', split="train")
    write_file(tmp_path, PLACE.format(4), '{"solvable": false}')
    write_file(tmp_path, PLACE.format(5), "{}")
    write_file(tmp_path, "pick_and_place_with_movable_recep-Pen-Cup-Desk-6", '{"solvable": true}')
    write_file(tmp_path, "pick_and_place_simple-AppleSliced-None-Desk-7", '{"solvable": true}')
    return tmp_path


def tasks(data: Path, games: str | None, *, number: int = 99, seed: int = 0) -> list[str]:
    found = list_tasks(games, num_tasks=number, seed=seed, games_dir=data)
    assert {task.environment for task in found} <= {"alfworld"}
    return [task.spec.split("/", 1)[1].removesuffix("/trial_T1") for task in found]


def test_a_split_has_the_games_that_alfworld_plays(data: Path):
    playable = {*(PLACE.format(n) for n in (1, 2, 3)), *(LOOK.format(n) for n in (1, 2))}
    assert set(tasks(data, "valid_seen")) == set(tasks(data, None)) == playable
    assert tasks(data, "train") == [PLACE.format(9)]


def test_types_take_turns_and_the_seed_decides_which_game_comes_first(data: Path):
    orders = {tuple(tasks(data, "valid_seen", seed=seed)) for seed in range(200)}
    assert len(orders) == 12  # all orders of three, and of two
    for order in orders:
        kinds = [name.partition("-")[0][:4] for name in order]
        assert kinds == ["pick", "look", "pick", "look", "pick"]
        first = tasks(data, "valid_seen", number=2, seed=0)
        assert first == tasks(data, "valid_seen", seed=0)[:2]


def test_a_type_of_a_split(data: Path):
    found = tasks(data, "valid_seen:look_at_obj_in_light")
    assert sorted(found) == [LOOK.format(1), LOOK.format(2)]


def test_entries_take_turns_and_a_game_is_played_once(data: Path):
    task = f"valid_seen/{PLACE.format(2)}"
    found = tasks(data, f"train, {task}, {task}/trial_T1, valid_seen:look_at_obj_in_light")
    assert found[:2] == [PLACE.format(9), PLACE.format(2)]
    assert sorted(found[2:]) == [LOOK.format(1), LOOK.format(2)]


def test_a_file_that_cannot_be_read_is_left_to_be_named_by_play(data: Path):
    write_file(data, PLACE.format(8), "{broken")
    assert PLACE.format(8) in tasks(data, "valid_seen")


def test_the_data_may_be_named_by_the_folder_of_splits(data: Path, monkeypatch: pytest.MonkeyPatch):
    everything = tasks(data, None)
    assert tasks(data / "json_2.1.1", None) == everything
    monkeypatch.setenv("ALFWORLD_DATA", str(data))
    assert len(list_tasks(None, num_tasks=99, seed=0)) == 5
    spec = f"train/{PLACE.format(9)}/trial_T1"
    file = data / "json_2.1.1" / spec / "game.tw-pddl"
    assert game_file(spec, data) == game_file(spec, data / "elsewhere") == file


@pytest.mark.parametrize(
    ("games", "message"),
    [
        ("valid_unseen", r"a split of .*json_2.1.1 \(train, valid_seen\).*got 'valid_unseen'"),
        ("", "named by a split"),
        ("valid_seen/a/b/c", "named by a split"),
        ("valid_seen/../train", "named by a split"),
        ("valid_seen:look", "types of tasks are pick_and_place_simple, .*got 'valid_seen:look'"),
        ("train:look_at_obj_in_light", "at least one game that ALFWorld plays"),
        (f"valid_seen/{PLACE.format(4)}", "Unsolvable games, and tasks with movable or Sliced"),
        ("valid_seen/nothing", "at least one game that ALFWorld plays: 'valid_seen/nothing'"),
    ],
)
def test_what_names_no_game_is_refused(data: Path, games: str, message: str):
    with pytest.raises(OptionError, match=message):
        tasks(data, games)


def test_named_games_are_not_left_out(data: Path):
    with pytest.raises(OptionError, match="with 1 task, 1 would be left out"):
        tasks(data, f"train,valid_seen/{PLACE.format(1)}", number=1)


def test_without_data_it_says_where_they_must_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(OptionError, match=f"must be in {tmp_path}/json_2.1.1"):
        list_tasks(None, num_tasks=1, seed=0, games_dir=tmp_path)
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    with pytest.raises(OptionError, match="in the environment variable ALFWORLD_DATA"):
        list_tasks(None, num_tasks=1, seed=0)


def test_things_are_numbered_within_their_kind_from_the_last_id_on():
    ids = ["pen_bar_1", "pen_bar_2", "pencil_bar_1", "agent1", "sink_bar_1_bar_sinkbasin"]
    assert shown_names(ids) == {
        "agent1": "agent1",
        "pen_bar_1": "pen 2",
        "pen_bar_2": "pen 1",
        "pencil_bar_1": "pencil 1",
        "sink_bar_1_bar_sinkbasin": "sinkbasin 1",
    }


HOUSE = Problem(
    things={
        **dict.fromkeys(["pen", "cup"], "object"),
        **dict.fromkeys(["shelf1", "shelf2", "box1", "box2", "sink"], "receptacle"),
        **dict.fromkeys(["start", "at1", "at2", "at3", "at4", "at5"], "location"),
        **dict.fromkeys(["pentype", "cuptype"], "otype"),
        **dict.fromkeys(["shelftype", "boxtype", "sinktype"], "rtype"),
        "agent1": "agent",
    },
    constant=frozenset(
        {
            ("objecttype", "pen", "pentype"),
            ("objecttype", "cup", "cuptype"),
            *(("receptacletype", f"shelf{n}", "shelftype") for n in (1, 2)),
            *(("receptacletype", f"box{n}", "boxtype") for n in (1, 2)),
            *(("openable", f"box{n}") for n in (1, 2)),
            ("receptacletype", "sink", "sinktype"),
            ("receptacleatlocation", "shelf1", "at1"),
            ("receptacleatlocation", "shelf2", "at2"),
            ("receptacleatlocation", "box1", "at3"),
            ("receptacleatlocation", "box2", "at4"),
            ("receptacleatlocation", "sink", "at5"),
            *(("cancontain", place, "pentype") for place in ("boxtype", "shelftype")),
            ("cancontain", "shelftype", "cuptype"),
        }
    ),
    goal="(:goal (pentype boxtype)))",
    named=frozenset({"pentype", "boxtype"}),
    used=frozenset({"sinktype"}),
)
"""The pen belongs into a box; the rules know a sink; the cup is no part of it."""


def told(*truths: str, every_place: bool = False) -> set[str]:
    """Return the lines of the problem of a state: things with their sorts, and facts."""
    return set(HOUSE.at(truths, every_place=every_place).splitlines())


def test_the_planner_is_told_what_the_goal_is_about_and_where_that_is():
    lines = told(
        "atlocation(agent1, at3)", "inreceptacle(pen, shelf2)", "inreceptacle(cup, shelf1)"
    )
    assert {line for line in lines if line.endswith((" - object", " - receptacle"))} == {
        "pen - object",
        "shelf2 - receptacle",  # where the pen is
        "box1 - receptacle",  # where the agent is
        "box2 - receptacle",
        "sink - receptacle",
    }
    assert {"(atlocation agent1 at3)", "(inreceptacle pen shelf2)", HOUSE.goal} <= lines
    assert {line for line in lines if "cancontain" in line} == {
        "(cancontain boxtype pentype)",
        "(cancontain shelftype pentype)",
    }
    assert not any("cup " in line or "shelf1" in line for line in lines)


def test_of_places_that_are_alike_one_is_enough():
    at_the_sink = ("atlocation(agent1, at5)", "inreceptacle(pen, shelf2)")
    assert {"box1 - receptacle", "box2 - receptacle"} & told(*at_the_sink) == {"box1 - receptacle"}
    # One that is open is not like one that is closed.
    assert {"box1 - receptacle", "box2 - receptacle"} <= told(*at_the_sink, "opened(box2)")


def test_states_that_differ_in_nothing_that_matters_have_one_problem():
    pen = "inreceptacle(pen, shelf2)"
    at_the_start = HOUSE.at(["atlocation(agent1, start)", pen, "inreceptacle(cup, shelf1)"])
    at_another_shelf = HOUSE.at(["atlocation(agent1, at1)", pen, "inreceptacle(cup, sink)"])
    assert at_the_start == at_another_shelf
    assert at_the_start != HOUSE.at(["atlocation(agent1, at2)", pen])


def test_what_is_in_the_way_can_be_put_down_at_an_open_place():
    carried = ("holds(agent1, cup)", "inreceptacle(pen, box1)", "atlocation(agent1, at5)")
    lines = told(*carried)
    assert {"cup - object", "shelf1 - receptacle", "(cancontain shelftype cuptype)"} <= lines
    assert "shelf2 - receptacle" not in lines
    assert "shelf2 - receptacle" in told(*carried, every_place=True)
