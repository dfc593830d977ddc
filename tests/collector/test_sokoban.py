"""Sokoban's rules, distances and dead ends on boards drawn by hand."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcredit.collector.environments.base import Observation, replay
from graphcredit.collector.environments.sokoban.board import (
    Board,
    Position,
    cell_set,
    distances_to_goal,
)
from graphcredit.collector.environments.sokoban.environment import (
    SokobanEnvironment,
    board_text,
    open_sokoban,
)
from graphcredit.collector.environments.sokoban.make_boards import make_board
from graphcredit.collector.policies.base import PolicyView
from graphcredit.collector.policies.language.prompts import load_template, render
from tests.collector.slow_sokoban import STEPS, slow_distances, slow_move
from tests.examples import examples

ROOM = """
# # # # #
# P _ _ #
# _ X _ #
# _ _ O #
# # # # #
"""


def read_board(text: str) -> tuple[Board, Position]:
    """Return the board and the position of a text."""
    lines = ["".join(line.split()) for line in text.splitlines()]
    walls, targets, boxes, (player,) = (
        [cell for cell, symbol in enumerate("".join(lines)) if symbol in kind]
        for kind in ("#", "O√S", "X√", "PS")
    )
    board = Board(
        rows=len(lines), columns=len(lines[0]), walls=cell_set(walls), targets=cell_set(targets)
    )
    return board, Position(player, cell_set(boxes))


def new(text: str = ROOM, *, with_oracle: bool = True) -> SokobanEnvironment:
    return SokobanEnvironment(*read_board(text.strip()), with_oracle=with_oracle)


def after(text: str, *actions: str) -> Observation:
    return replay(new(text), actions)


def row(text: str) -> str:
    """Return a corridor of one row."""
    return f"{'# ' * (len(text) + 1)}#\n# {' '.join(text)} #\n{'# ' * (len(text) + 1)}#"


def test_the_first_observation_is_the_board():
    first = new().reset()
    assert first.state == ROOM.strip()
    assert first.text is None
    assert first.task == "Push every box onto a target."
    assert first.admissible_actions == ("down", "right")


@pytest.mark.parametrize(
    ("before", "reached"),
    [
        ("P_XO", "_PXO"),  # a step onto floor
        ("POX_", "_SX_"),  # a step onto a target
        ("S_X_", "OPX_"),  # a step off a target
        ("PX_O", "_PXO"),  # a push onto floor
        ("PXO_", "_P√_"),  # a push onto a target
        ("P√_XO", "_SXXO"),  # a push off a target
        ("P√OX", "_S√X"),  # a push from target to target
    ],
)
def test_a_move_is_a_step_or_a_push(before: str, reached: str):
    assert after(row(before), "right").state == row(reached)
    mirrored = after(row(before[::-1]), "left").state
    assert mirrored == row(reached[::-1])


@pytest.mark.parametrize(
    "before",
    [
        "OXP",  # a wall
        "OPX",  # a box before a wall
        "OO_PXX",  # a box before a box
        "O_PX√",  # a box before a box on its target
    ],
)
def test_a_blocked_move_is_refused_and_changes_nothing(before: str):
    environment = new(row(before))
    first = environment.reset()
    assert "right" not in (first.admissible_actions or ())
    done = environment.step("right")
    assert (done.is_action_valid, done.terminated, done.reward, done.cost) == (False, False, 0, 1)
    assert done.observation == first


@pytest.mark.parametrize("action", ["", "push", "upright", "go down", "r"])
def test_what_is_no_action_is_refused(action: str):
    environment = new()
    first = environment.reset()
    done = environment.step(action)
    assert (done.is_action_valid, done.observation) == (False, first)


def test_capitals_and_blanks_around_an_action_are_accepted():
    assert new().step(" Down\n").observation == after(ROOM, "down")


def test_the_last_box_on_a_target_wins():
    environment = new(row("OXPXO"))
    first = environment.step("right")
    assert (first.reward, first.terminated, first.success) == (0.0, False, False)
    assert first.observation.state == row("OX_P√")
    back = environment.step("left")
    last = environment.step("left")
    assert (back.reward, last.reward, last.terminated, last.success) == (0.0, 1.0, True, True)
    won = last.observation
    assert (won.state, won.admissible_actions) == (row("√P__√"), ())
    assert (won.oracle_actions, won.oracle_distance) == ((), 0.0)


def test_the_plan_is_a_shortest_one():
    """Push right from the left, walk around, push down: 5 moves; or down first, then right."""
    first = new().reset()
    assert first.oracle_actions == ("down", "right", "up", "right", "down")
    assert first.oracle_distance == 5.0
    assert after(ROOM, "right").oracle_actions == ("down", "left", "down", "right")
    assert after(ROOM, "down", "up").oracle_distance == 5.0


def test_a_box_at_a_wall_without_a_target_is_a_dead_end():
    """The box at the upper wall can be pushed along it only, and no target is there."""
    lost = after(ROOM, "down", "down", "right", "up")
    assert lost.state == "# # # # #\n# _ X _ #\n# _ P _ #\n# _ _ O #\n# # # # #"
    assert (lost.oracle_actions, lost.oracle_distance) == (None, None)
    assert lost.admissible_actions == ("down", "left", "right")
    # One move before it could be won: left, up, a push to the right, up, right, a push down.
    assert after(ROOM, "down", "down", "right").oracle_distance == 6.0


def test_two_boxes_in_a_corridor_block_each_other():
    assert new(row("OO_PXX")).reset().oracle_distance is None
    assert new(row("PX_XOO")).reset().oracle_distance is None
    # Both are pushed outwards: one move, and three to the other side.
    assert new(row("OX_PXO")).reset().oracle_distance == 4.0


def test_without_an_oracle_there_is_no_plan():
    first = new(with_oracle=False).reset()
    assert (first.oracle_actions, first.oracle_distance) == (None, None)


@settings(max_examples=examples(25))
@given(seed=st.integers(0, 10**6), size=st.sampled_from(["5x5b1", "5x5b2", "5x6b2"]))
def test_distances_and_dead_ends_are_those_of_a_slow_search(seed: int, size: str):
    board, start = make_board(f"{size}-s{seed}")
    slow = slow_distances(board_text(board, start))
    fast = distances_to_goal(board)
    for text, distance in slow.items():
        assert fast.get(read_board(text)[1], float("inf")) == distance


@settings(max_examples=examples(25))
@given(seed=st.integers(0, 10**6), walk=st.lists(st.sampled_from(sorted(STEPS)), max_size=30))
def test_moves_are_those_on_the_text(seed: int, walk: list[str]):
    environment = open_sokoban(f"6x6b3-s{seed}", Path(), False)
    observation = environment.reset()
    for action in walk:
        moved = slow_move(observation.state, action)
        possible = [a for a in sorted(STEPS) if slow_move(observation.state, a) is not None]
        assert observation.admissible_actions == tuple(possible)
        done = environment.step(action)
        assert done.observation.state == (moved or observation.state)
        assert done.is_action_valid == (moved is not None)
        if done.terminated:
            return
        observation = done.observation


@settings(max_examples=examples(25))
@given(seed=st.integers(0, 10**6))
def test_a_board_is_its_text(seed: int):
    board, start = make_board(f"5x7b3-s{seed}")
    for position in (start, *list(distances_to_goal(board))[:9]):
        text = board_text(board, position)
        assert read_board(text) == (board, position)


def test_a_language_model_sees_the_board_and_its_actions():
    messages = render(load_template("sokoban"), PolicyView(observation=new().reset()))
    assert [message["role"] for message in messages] == ["system", "user"]
    assert "√ box on a target" in messages[0]["content"]
    assert f"The board:\n{ROOM.strip()}\n" in messages[1]["content"]
    assert "You can go:\n- down\n- right\n" in messages[1]["content"]
