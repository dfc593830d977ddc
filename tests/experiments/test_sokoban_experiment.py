"""The experiment on boards that were never seen: boards, policy, episodes, update and report."""

from math import comb

import numpy as np
import polars as pl
import pytest
import torch

from experiments.episodes import GROUP_SIZE, advantages
from experiments.sokoban import learn as learn_module
from experiments.sokoban import run
from experiments.sokoban.boards import ACTIONS, Boards, drawn, view
from experiments.sokoban.play import sample, step_table
from experiments.sokoban.policy import HORIZON, make_policy, probabilities, success_of
from experiments.sokoban.report import best_rates, gaps, repeated
from experiments.sokoban.settings import TUNING_WARMS, Cell, read_arm
from experiments.sokoban.update import Learner
from experiments.sokoban.warm import oracle
from graphcredit.store.errors import OptionError
from tests.collector.test_sokoban import read_board


def _line(length: int) -> Boards:
    """Return one board of a corridor: `right` leads on, and its last position is won."""
    place = np.arange(length)
    target = np.repeat(place[:, None], 4, axis=1)
    target[:-1, ACTIONS.index("right")] = place[1:]
    admissible = target != place[:, None]
    return Boards(
        names=("line",),
        start=np.array([0]),
        board=np.zeros(length, np.int64),
        target=target,
        admissible=admissible,
        is_won=place == length - 1,
        distance=(length - 1 - place).astype(np.float64),
        text=tuple(f"place {number}" for number in place),
        seen=np.eye(length, dtype=np.uint8),
    )


def _even_policy(num_features: int) -> torch.nn.Module:
    policy = make_policy(num_features, 0)
    for weights in policy.parameters():
        torch.nn.init.zeros_(weights)
    return policy


def test_a_player_sees_walls_boxes_and_targets_around_it():
    board, position = read_board("#####\n#_XO#\n#P__#\n#___#\n#####")
    walls, boxes, targets = view(board, position).reshape(3, 5, 5)
    assert walls.tolist() == [
        [1, 1, 1, 1, 1],
        [1, 1, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 1, 1],
    ]
    assert np.argwhere(boxes).tolist() == [[1, 3]]
    assert np.argwhere(targets).tolist() == [[1, 4]]


def test_boards_are_those_of_the_environment_and_none_is_drawn_twice():
    first = drawn("5x5b1", 40, first_seed=0)
    other = drawn("5x5b1", 10, first_seed=0, unlike=first)
    boards = Boards.of((*first, *other))
    starts = {boards.text[start] for start in boards.start}
    assert len(starts) == 50
    assert (boards.distance[boards.start] >= 4).all()
    # A shortest way is as long as its distance says, and a refused action stays where it is.
    place, moves = boards.start.copy(), 0
    while not boards.is_won[place].all():
        after = boards.target[place]
        best = after[np.arange(50), boards.distance[after].argmin(1)]
        place, moves = np.where(boards.is_won[place], place, best), moves + 1
    assert moves == boards.distance[boards.start].max()
    stays = boards.target == np.arange(len(boards.board))[:, None]
    assert np.array_equal(stays, ~boards.admissible)


def test_exact_success_is_that_of_a_binomial_in_a_corridor():
    line = _line(3)
    wins = 1 - sum(comb(HORIZON, n) * 0.25**n * 0.75 ** (HORIZON - n) for n in (0, 1))
    assert success_of(_even_policy(3), line) == pytest.approx([wins])


def test_episodes_and_their_steps_are_what_a_collector_would_log():
    line = _line(3)
    policy = _even_policy(3)
    rng = np.random.default_rng(0)
    episodes = sample(line, np.array([0, 0]), lambda at: probabilities(policy, line, at), rng)
    assert episodes.episode.max() == 2 * GROUP_SIZE - 1
    assert episodes.chance == pytest.approx(np.full(len(episodes.chance), 0.25))
    steps = step_table(line, episodes, with_lists=True).to_pylist()
    won = [step for step in steps if step["success"]]
    assert {step["next_state"] for step in won} == {"place 2"}
    assert sum(step["reward"] for step in steps) == len(won) > 0
    assert all(step["admissible_actions"] == ["right"] for step in steps)
    assert all(step["is_action_valid"] == (step["action"] == "right") for step in steps)


def test_the_oracle_wins_in_as_few_moves_as_there_are():
    boards = Boards.of(drawn("5x5b1", 3, first_seed=0))
    rng = np.random.default_rng(0)
    episodes = sample(boards, np.arange(3), lambda at: oracle(boards, at, 0.0), rng)
    assert boards.is_won[episodes.target[episodes.is_last]].all()
    lengths = np.repeat(boards.distance[boards.start], GROUP_SIZE)
    assert np.array_equal(np.bincount(episodes.episode), lengths)


def test_an_update_moves_the_policy_along_the_credit_and_nowhere_without():
    line = _line(4)
    learner = Learner.of(make_policy(4, 1), 0.01)
    rng = np.random.default_rng(0)

    def right() -> np.ndarray:
        return probabilities(learner.policy, line, np.arange(3))[:, ACTIONS.index("right")]

    before = right()
    chosen = np.zeros(4, np.int64)
    episodes = sample(line, chosen, lambda at: probabilities(learner.policy, line, at), rng)
    learner.update(line, episodes, np.zeros(len(episodes.action)), rng)
    assert np.array_equal(right(), before)
    learner.update(line, episodes, np.where(episodes.action == 2, 1.0, -0.1), rng)
    assert right().mean() > before.mean()


def test_an_arm_names_an_estimator_its_options_and_whether_there_are_lists():
    name, options, with_lists = read_arm("graphgpo:distance_discount=0.5")
    assert (name, getattr(options, "distance_discount", None), with_lists) == (
        "graphgpo",
        0.5,
        True,
    )
    assert read_arm("reach/no-lists")[2] is False
    for wrong in ("nobody", "grpo/nothing", "grpo:no=1"):
        with pytest.raises(OptionError):
            read_arm(wrong)


def test_without_lists_the_credit_of_groups_that_nobody_won_is_another():
    boards = Boards.of(drawn("7x7b2", 4, first_seed=0))
    rng = np.random.default_rng(0)
    episodes = sample(boards, np.arange(4), lambda at: oracle(boards, at, 1.0), rng)
    _, options, _ = read_arm("reach")
    with_lists, without = (
        advantages(step_table(boards, episodes, with_lists=given), {"reach": options})["reach"]
        for given in (True, False)
    )
    assert with_lists.shape == without.shape == episodes.action.shape
    assert not np.allclose(with_lists, without)


def _rows(arm: str, rate: float, warm: int, end: float) -> list[dict[str, object]]:
    run = {"size": "6x6b2", "arm": arm, "rate": rate, "warm": warm, "training": end}
    return [
        run
        | {"iteration": iteration, "held_out": value, "with_credit": 0.5, "size_of_credit": 1.0}
        | {"env_steps": 10 * iteration, "seconds": 1.0}
        for iteration, value in ((0, 0.2), (20, end))
    ]


def test_rates_are_chosen_on_other_warm_starts_and_differences_are_paired():
    rows: list[dict[str, object]] = []
    for warm in TUNING_WARMS:
        rows += _rows("a", 0.001, warm, 0.4) + _rows("a", 0.003, warm, 0.5)
        rows += _rows("b", 0.001, warm, 0.4) + _rows("b", 0.003, warm, 0.3)
    for warm, value in enumerate((0.3, 0.5)):
        rows += _rows("a", 0.003, warm, value) + _rows("b", 0.001, warm, value - 0.1)
        rows += _rows("b", 0.003, warm, 1.0)
    table = pl.DataFrame(rows)
    assert best_rates(table) == {("6x6b2", "a"): 0.003, ("6x6b2", "b"): 0.001}
    runs = repeated(table)
    assert runs.select("arm", "warm", "end").rows() == [
        ("a", 0, 0.3),
        ("a", 1, 0.5),
        ("b", 0, pytest.approx(0.2)),
        ("b", 1, 0.4),
    ]
    found = gaps(runs, "b", "end")["a"]
    assert (found.value, found.low, found.high) == pytest.approx((0.1, 0.1, 0.1))


def test_all_arms_play_the_same_boards_and_a_pass_plays_each_once():
    one, other = (Cell(size="6x6b2", arm=arm, rate=0.1, warm=3) for arm in ("grpo", "gigpo"))
    chosen = [learn_module.boards_played(one, iteration, 256) for iteration in range(8)]
    assert sorted(np.concatenate(chosen)) == list(range(256))
    again = [learn_module.boards_played(other, iteration, 256) for iteration in range(8)]
    assert np.array_equal(chosen, again)


@pytest.mark.slow
def test_a_short_run_wins_more_on_boards_that_it_never_saw():
    assert run.quick() >= run.RISE
