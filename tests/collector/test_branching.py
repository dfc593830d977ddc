"""Trees: which decisions are asked for, in which order they are followed, where they end."""

import random
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.collector.playing.branching.allocation import Allocation, StateScore
from graphcredit.collector.playing.branching.tree import Path, Walk, grow
from graphcredit.collector.policies.base import Decision
from graphcredit.store.errors import InputError
from tests.collector.maze import Maze

WAYS = {
    "A": {"b": "B", "c": "C", "wait": "A"},
    "B": {"a": "A", "d": "D"},
    "C": {"d": "D", "win": "WON"},
    "D": {"err": "LOST", "a": "A"},
}


def _allocation(tree_size: int = 8, num_total: int = 0, **num_rollouts: int) -> Allocation:
    """Return what is to be asked at some states; as often as the tree is large at any other.

    Where the states were never passed, only novelty and success rank decisions.
    """
    scores: dict[tuple[str, str | None], StateScore] = {
        ("t0", state): StateScore(num_total=num_total, score=number / 8, num_rollouts=number)
        for state, number in num_rollouts.items()
    }
    return Allocation(tree_size=tree_size, scores=scores, g_max=tree_size)


def _grow(
    allocation: Allocation,
    answers: Sequence[str | Decision],
    *,
    max_steps: int = 9,
    maze: Maze | None = None,
) -> tuple[list[Path], list[tuple[str, int]]]:
    """Grow a tree with these decisions, in the order in which they are wanted.

    Returns:
        The paths, and the state and count of each question.
    """
    asked: list[tuple[str, int]] = []
    left = [Decision(action=a) if isinstance(a, str) else a for a in answers]
    growing = grow(
        Walk(maze or Maze(WAYS), "t0"), allocation, random.Random(0), max_steps=max_steps
    )
    try:
        question = next(growing)
        while True:
            asked.append((question.view.observation.state, question.count))
            given, left = left[: question.count], left[question.count :]
            question = growing.send(given)
    except StopIteration as end:
        assert left == []
        return end.value, asked


def _states(path: Path) -> str:
    places = [step.before.state for step in path.steps]
    return " ".join([*places, path.view.observation.state])


def _marks(paths: Sequence[Path]) -> list[tuple[int | None, int]]:
    return [(path.branched_from, path.num_shared) for path in paths]


def test_where_everything_is_mastered_there_is_one_trajectory():
    (path,), asked = _grow(_allocation(A=1, B=1, C=1, D=1), ["b", "d", "a", "c", "win"])
    assert _states(path) == "A B D A C WON"
    assert asked == [("A", 1), ("B", 1), ("D", 1), ("A", 1), ("C", 1)]
    assert (path.branched_from, path.num_shared) == (None, 0)


def test_the_decision_of_greatest_step_reward_goes_on_and_the_others_follow_by_rank():
    """Leaving A is new; B has a lower score than C, so leading there is worth more."""
    paths, asked = _grow(
        _allocation(tree_size=4, num_total=10, A=3, B=1, C=2, D=1),
        ["wait", "c", "b", "d", "err", "d", "win", "err", "b", "d", "err"],
    )
    assert [_states(path) for path in paths] == [
        "A B D LOST",
        "A C WON",
        "A C D LOST",
        "A A B D LOST",
    ]
    assert asked == [("A", 3), ("B", 1), ("D", 1), ("C", 2), ("D", 1), ("A", 1), ("B", 1), ("D", 1)]
    assert _marks(paths) == [(None, 0), (0, 0), (1, 1), (0, 0)]


def test_what_waited_last_is_followed_first():
    paths, asked = _grow(_allocation(A=2, B=2, C=1, D=1), ["b", "c", "d", "d", "err", "err", "win"])
    assert [_states(path) for path in paths] == ["A B D LOST", "A B D LOST", "A C WON"]
    assert _marks(paths) == [(None, 0), (0, 1), (0, 0)]
    assert asked == [("A", 2), ("B", 2), ("D", 1), ("D", 1), ("C", 1)]


def test_no_more_decisions_are_asked_for_than_there_are_trajectories_to_follow_them():
    """Nothing is known: 4 at the root, and every path goes on alone, as without allocation."""
    paths, asked = _grow(_allocation(tree_size=4), ["b", "b", "c", "c"] + ["d", "err"] * 4)
    assert asked == [("A", 4)] + [("B", 1), ("D", 1)] * 2 + [("C", 1), ("D", 1)] * 2
    assert [_states(path) for path in paths] == ["A B D LOST"] * 2 + ["A C D LOST"] * 2
    assert _marks(paths) == [(None, 0)] + [(0, 0)] * 3


def test_what_the_root_leaves_is_spent_where_the_first_path_is_unresolved():
    paths, asked = _grow(
        _allocation(tree_size=4, A=2, C=1, D=1),
        ["b", "c"] + ["d", "d", "d"] + ["err"] * 3 + ["win"],
    )
    assert asked[:2] == [("A", 2), ("B", 3)]
    assert _marks(paths) == [(None, 0), (0, 1), (0, 1), (0, 0)]


def test_an_intractable_state_ends_the_path_without_a_decision():
    (path,), asked = _grow(_allocation(A=1, B=0), ["b"])
    assert asked == [("A", 1)]
    assert _states(path) == "A B"
    assert not path.has_ended


def test_a_task_that_is_intractable_from_its_start_has_one_decision():
    paths, asked = _grow(_allocation(A=0), ["wait"])
    assert asked == [("A", 1)]
    assert [_states(path) for path in paths] == ["A A"]


def test_no_path_is_longer_than_allowed():
    paths, _ = _grow(_allocation(A=2, B=1), ["b", "b", "a", "a"], max_steps=2)
    assert [_states(path) for path in paths] == ["A B A", "A B A"]


def test_a_malformed_answer_is_a_step_that_the_environment_is_not_told():
    maze = Maze(WAYS)
    mumble = Decision(action="hm", is_malformed=True)
    paths, _ = _grow(
        _allocation(tree_size=2, A=1, C=2), [mumble, "c", "win", mumble, "win"], maze=maze
    )
    assert [_states(path) for path in paths] == ["A A C WON", "A A C C WON"]
    assert maze.told == ["c", "win"]
    assert _marks(paths) == [(None, 0), (0, 2)]


def test_an_environment_that_does_not_repeat_itself_is_refused():
    class Moody(Maze):
        def step(self, action: str):
            done = super().step(action)
            if action == "b":
                self._ways["A"]["b"] = "D"
            return done

    ways = {place: dict(actions) for place, actions in WAYS.items()}
    with pytest.raises(
        InputError, match=r"deterministic.*task 't0', \['b'\] led to 'B', .* repeated to 'D'"
    ):
        _grow(_allocation(A=1, B=2), ["b", "a", "d"], maze=Moody(ways))


@st.composite
def _worlds(draw: st.DrawFn) -> tuple[Maze, Allocation, int]:
    places = "ABCDE"
    target = st.sampled_from([*places, "WON", "LOST"])
    ways = {place: {action: draw(target) for action in "xyz"} for place in places}
    numbers = {place: draw(st.integers(0, 5)) for place in places}
    return Maze(ways), _allocation(draw(st.integers(1, 6)), **numbers), draw(st.integers(1, 5))


@given(_worlds(), st.randoms(use_true_random=False))
def test_a_tree_is_made_of_whole_paths_and_each_decision_is_in_one_of_them(
    world: tuple[Maze, Allocation, int], chance: random.Random
):
    maze, allocation, max_steps = world
    growing = grow(Walk(maze, "t0"), allocation, chance, max_steps=max_steps)
    num_asked = 0
    paths: list[Path] = []
    decisions: list[Decision] = []
    while not paths:
        try:
            question = growing.send(decisions) if num_asked else next(growing)
            num_asked += question.count
            decisions = [Decision(action=chance.choice("xyz")) for _ in range(question.count)]
        except StopIteration as end:
            paths = end.value
    assert 1 <= len(paths) <= allocation.tree_size
    assert sum(len(path.steps) - path.num_shared for path in paths) == num_asked
    for number, path in enumerate(paths):
        assert 1 <= len(path.steps) <= max_steps
        assert (path.branched_from is None) == (number == 0)
        if path.branched_from is not None:
            assert path.branched_from < number
            other = paths[path.branched_from]
            shared = path.num_shared
            assert path.steps[:shared] == other.steps[:shared]
            assert path.steps[shared].before == other.steps[shared].before
        maze.reset()
        assert [maze.step(s.decision.action) for s in path.steps] == [s.done for s in path.steps]
        for step, following in pairwise(path.steps):
            assert not step.done.terminated
            assert step.done.observation == following.before
