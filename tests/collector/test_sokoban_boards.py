"""Sokoban's boards, drawn from their names, each of which can be won, from `collect` to `audit`."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphcredit.collector.environments.sokoban.board import distances_to_goal
from graphcredit.collector.environments.sokoban.environment import board_text
from graphcredit.collector.environments.sokoban.make_boards import MIN_MOVES, make_board
from graphcredit.collector.environments.sokoban.names import (
    MAX_POSITIONS,
    SIDES,
    Size,
    list_tasks,
    parse_name,
)
from graphcredit.store import open_store, read_steps
from graphcredit.store.errors import OptionError
from tests.cli.in_process import completed

GOLDEN_6X6 = """
# # # # # #
# _ _ P _ #
# O X X O #
# _ _ _ _ #
# _ _ # # #
# # # # # #
"""
GOLDEN_5X7 = """
# # # # # # #
# _ # O X S #
# _ # # _ X #
# O X _ _ _ #
# # # # # # #
"""


def test_a_board_is_the_same_everywhere():
    """The boards are part of the logs' meaning: a change of the draw must be seen."""
    assert board_text(*make_board("6x6b2-s0")) == GOLDEN_6X6.strip()
    assert board_text(*make_board("5x7b3-s2")) == GOLDEN_5X7.strip()


@pytest.mark.parametrize("size", ["5x5b1", "5x5b2", "5x6b3", "6x6b2", "6x6b4", "8x6b2"])
def test_boards_can_be_won_but_not_at_once(size: str):
    drawn = [make_board(f"{size}-s{seed}") for seed in range(40)]
    for board, start in drawn:
        assert distances_to_goal(board)[start] >= MIN_MOVES
        assert not start.boxes & board.targets
        assert start.boxes.bit_count() == board.targets.bit_count() == int(size[-1])
        assert f"{board.rows}x{board.columns}" == size[:3]
    assert len({board_text(*one) for one in drawn}) > 30


def test_another_hash_seed_draws_the_same_boards_and_plans():
    code = (
        "from pathlib import Path\n"
        "from graphcredit.collector.environments.sokoban.environment import open_sokoban\n"
        "for n in range(20): print(open_sokoban(f'6x6b3-s{n}', Path(), True).reset())"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        ).stdout
        for seed in ("1", "2")
    }
    (only,) = printed
    assert only.count("oracle_actions=(") == 20


def test_the_largest_boards_that_can_be_named():
    sizes = [
        Size(rows=rows, columns=columns, boxes=boxes)
        for rows in SIDES
        for columns in SIDES
        for boxes in range(1, (rows - 2) * (columns - 2) // 4 + 1)
    ]
    largest = {
        f"{size.rows}x{size.columns}": size.boxes
        for size in sizes
        if size.num_positions <= MAX_POSITIONS
    }
    assert {name: largest[name] for name in ("5x5", "6x6", "7x7", "8x8", "9x9", "12x12")} == {
        "5x5": 2,
        "6x6": 4,
        "7x7": 4,
        "8x8": 3,
        "9x9": 3,
        "12x12": 2,
    }
    # 16 cells: 120 ways to place two boxes, and 14 cells for the player.
    assert Size(rows=6, columns=6, boxes=2).num_positions == 1680


def test_tasks_are_named_and_numbered():
    assert [t.task_id for t in list_tasks("6x6b2", num_tasks=2, seed=1)] == [
        "sokoban-6x6b2-s1",
        "sokoban-6x6b2-s2",
    ]
    mixed = [t.spec for t in list_tasks("5x5b1, 6x6b3-s7", num_tasks=4, seed=0)]
    assert mixed == ["5x5b1-s0", "6x6b3-s7", "5x5b1-s1", "5x5b1-s2"]
    assert [t.spec for t in list_tasks("6x6b3-s7", num_tasks=9, seed=0)] == ["6x6b3-s7"]
    assert [t.spec for t in list_tasks(None, num_tasks=3, seed=5)] == [
        "6x6b1-s5",
        "6x6b2-s5",
        "6x6b1-s6",
    ]
    # The same board has one name.
    assert [t.spec for t in list_tasks("06x6b02-s01", num_tasks=1, seed=0)] == ["6x6b2-s1"]


@pytest.mark.parametrize(
    ("games", "number", "seed", "message"),
    [
        ("6x6", 1, 0, "<rows>x<columns>b<boxes>, with an optional seed, .*: got '6x6'"),
        ("", 1, 0, "got ''"),
        ("6x6b2,", 2, 0, "got ''"),
        ("4x6b1", 1, 0, "5 to 12 rows and columns, with the border of walls: got 4x6b1"),
        ("6x13b1", 1, 0, "5 to 12 rows and columns, with the border of walls: got 6x13b1"),
        ("6x6b0", 1, 0, "6x6 must have 1 to 4 boxes, .*: got 6x6b0"),
        ("5x5b3", 1, 0, "5x5 must have 1 to 2 boxes, .*: got 5x5b3"),
        # comb(36, 4) = 58,905, times 32 cells for the player.
        ("8x8b4", 1, 0, "at most 1,000,000 positions, .*: 8x8b4 has 1,884,960"),
        ("6x6b2", 0, 0, "the number of tasks must be 1 or more: got 0"),
        ("6x6b2", 1, -1, r"from 0 to 2\^31 - 1: got -1"),
        ("6x6b2-s2147483648", 1, 0, r"from 0 to 2\^31 - 1: got 2147483648"),
        ("6x6b2-s1,6x6b2-s2", 1, 0, "with 1 task, 1 would be left out, 6x6b2-s2 the first"),
    ],
)
def test_what_is_no_board_is_refused(games: str, number: int, seed: int, message: str):
    with pytest.raises(OptionError, match=message):
        list_tasks(games, num_tasks=number, seed=seed)


def test_a_board_needs_its_seed():
    with pytest.raises(OptionError, match=r"<rows>x<columns>b<boxes>-s<seed>.*got '6x6b2'"):
        parse_name("6x6b2")


def graphcredit(*arguments: str | Path) -> str:
    done = completed(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def collect(store: Path, *arguments: str) -> list[dict[str, Any]]:
    """Collect with an oracle that errs in 3 of 10 moves, and return all steps, sorted."""
    graphcredit(
        *("collect", store, "--env", "sokoban", "--games", "6x6b2", "--max-steps", "30"),
        *("--policy", "oracle:0.3", "--oracle", *arguments),
    )
    steps = [step for table in read_steps(open_store(store)) for step in table.to_pylist()]
    return sorted(steps, key=lambda step: (step["trajectory_id"], step["step_index"]))


def test_graph_estimators_credit_the_moves_that_lead_nearer(tmp_path: Path):
    root = tmp_path / "store"
    steps = collect(root, "--tasks", "16", "--group-size", "8", "--workers", "0")
    ends = [step["success"] for step in steps if step["success"] is not None]
    assert len(ends) == 128
    assert 60 < sum(ends) < 128
    assert {step["oracle_distance"] for step in steps if step["success"]} == {1.0}
    _check_that_dead_ends_stay_dead(steps)
    graphcredit("credit", root, "-e", "grpo", "-e", "graphgpo")
    assert "0 errors, 0 notices" in graphcredit("check", root)
    measures = json.loads(graphcredit("audit", root, "--json"))["numbers"]
    ranked = measures["rank correlation with true progress"]
    assert ranked["graphgpo step"] > 0.5
    assert ranked["grpo"] < 0.2
    assert measures["steps without a signal"]["graphgpo"] < 0.2


def _check_that_dead_ends_stay_dead(steps: list[dict[str, Any]]) -> None:
    dead = [step for step in steps if step["oracle_distance"] is None]
    assert 0 < len(dead) < len(steps)
    assert {step["next_oracle_distance"] for step in dead} == {None}
    assert {step["success"] for step in dead} == {None, False}
