"""What other rollouts say of a visit, and the correlations that are made of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.credit.evidence.knowledge import Knowledge, knowledge_of
from graphcredit.credit.evidence.report import recommended
from graphcredit.credit.evidence.visits import PSEUDO_VISITS, Rollouts, said_by_others, swaps
from graphcredit.credit.steps.arrays import Ints

Paths = list[tuple[int, float, list[int]]]
"""Group, outcome and nodes of each rollout."""


def rollouts(paths: Paths) -> tuple[Rollouts, Ints]:
    group, outcome, nodes = zip(*paths, strict=True)
    made = Rollouts(
        group=np.array(group),
        length=np.array(list(map(len, nodes))),
        outcome=np.array(outcome, float),
    )
    width = 1 + max(map(max, nodes))
    flat = [g * width + node for g, _, of in paths for node in of]
    return made, np.array(flat)


def slow(paths: Paths) -> tuple[list[float], list[float]]:
    """Return surprise and opinion of each visit, word for word as `Said` defines them."""
    surprises: list[float] = []
    opinions: list[float] = []
    for me, (group, outcome, nodes) in enumerate(paths):
        for time, node in enumerate(nodes):
            others = [
                (y, visited)
                for other, (g, y, visited) in enumerate(paths)
                if other != me and g == group and len(visited) > time
            ]
            if not others:
                surprises.append(0.0)
                opinions.append(0.0)
                continue
            mean = sum(y for y, _ in others) / len(others)
            here = [y for y, visited in others if node in visited]
            trust = len(here) / (len(here) + PSEUDO_VISITS)
            surprises.append(outcome - mean)
            opinions.append(trust * (sum(here) / len(here) - mean) if here else 0.0)
    return surprises, opinions


EXAMPLE: Paths = [(0, 1.0, [0, 1]), (0, 0.0, [0, 2, 2]), (0, 1.0, [0, 1]), (0, 0.0, [3, 2, 0, 2])]


def test_a_visit_by_hand():
    """At node 1 the first rollout meets the third, which won; two others lost: 2/3 of (1 − 1/3)."""
    said = said_by_others(*rollouts(EXAMPLE))
    assert said.surprise[1] == pytest.approx(1 - 1 / 3)
    assert said.opinion[1] == pytest.approx(1 / 1.5 * (1 - 1 / 3))
    assert said.has_company.tolist() == [True] * 7 + [False, True, True, True]
    assert said.surprise[-1] == 0  # all others have ended


_PATHS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from([0.0, 0.25, 1.0]),
        st.lists(st.integers(0, 4), min_size=1, max_size=6),
    ),
    min_size=1,
    max_size=12,
)


@given(_PATHS)
def test_every_visit_is_as_the_slow_reference_says(paths: Paths):
    said = said_by_others(*rollouts(paths))
    surprise, opinion = slow(paths)
    np.testing.assert_allclose(said.surprise, surprise, atol=1e-12)
    np.testing.assert_allclose(said.opinion, opinion, atol=1e-12)


@given(_PATHS)
def test_swaps_keep_each_state_in_its_group_and_at_its_time(paths: Paths):
    made, node = rollouts(paths)
    key = np.stack([made.group[made.of_step], made.time])
    for givers in swaps(made, 3):
        changed = node[givers]
        assert sorted(zip(*key, node, strict=True)) == sorted(zip(*key, changed, strict=True))


def test_who_gives_a_state_gives_the_next_ones_too():
    made, _ = rollouts([(0, 0.0, [0] * 5)] * 6)
    for givers in swaps(made, 3):
        steps = givers.reshape(6, 5)
        assert (np.diff(steps, axis=1) == 1).all()


def knowledge(paths: Paths) -> Knowledge:
    made, node = rollouts(paths)
    made = Rollouts(
        group=np.unique(made.group, return_inverse=True)[1],
        length=made.length,
        outcome=made.outcome,
    )
    return knowledge_of(made, node)


@given(_PATHS)
def test_time_one_state_and_each_visit_alone_tell_nothing(paths: Paths):
    number = iter(range(1000))
    for change in (
        lambda nodes: list(range(len(nodes))),
        lambda nodes: [0] * len(nodes),
        lambda nodes: [next(number) for _ in nodes],
    ):
        told = knowledge([(group, y, change(nodes)) for group, y, nodes in paths])
        assert told.evidence().value == 0
        assert told.beyond_chance().value == 0


@given(_PATHS)
def test_names_of_states_and_the_order_of_rollouts_do_not_matter(paths: Paths):
    told = knowledge(paths)
    renamed = knowledge([(g, y, [7 - node for node in nodes]) for g, y, nodes in paths[::-1]])
    for figure in (Knowledge.information, Knowledge.guidance):
        assert figure(renamed).value == pytest.approx(figure(told).value, abs=1e-9)
    assert renamed.company == pytest.approx(told.company)


def chain(tells: bool, num_groups: int, seed: int = 0) -> Paths:
    """Return rollouts that turn to a good or a bad room at the second step, and win accordingly."""
    rng = np.random.default_rng(seed)
    paths: Paths = []
    for group in range(num_groups):
        for _ in range(8):
            is_good = rng.random() < 0.5
            won = float(rng.random() < (0.8 if is_good else 0.2))
            room = 1 + (is_good if tells else rng.random() < 0.5)
            paths.append((group, won, [0, int(room), int(room) + 2]))
    return paths


def test_a_state_that_tells_the_outcome_has_evidence_and_a_coin_has_none():
    tells, coin = knowledge(chain(True, 40)), knowledge(chain(False, 40))
    assert tells.beyond_chance().is_positive
    assert not coin.beyond_chance().is_positive
    assert tells.more_than(coin).is_positive
    assert tells.guidance().value > 0.1 > abs(coin.guidance().value)
    assert tells.by_part[0] == 0 < 0.3 < min(tells.by_part[1:])


def test_a_coin_is_seldom_taken_for_evidence():
    """Two standard errors on one side: 2 of 100 in the long run."""
    seen = [knowledge(chain(False, 16, seed)).beyond_chance().is_positive for seed in range(100)]
    assert sum(seen) <= 8


def test_the_error_is_that_of_leaving_out_one_group_at_a_time():
    told = knowledge(chain(True, 5))
    kept = [np.arange(5) != group for group in range(5)]
    without = np.array([told.evidence(groups).value for groups in kept])
    expected = (4 / 5 * ((without - without.mean()) ** 2).sum()) ** 0.5
    assert told.evidence().error == pytest.approx(expected)
    assert knowledge(chain(True, 1)).evidence().error == np.inf


def test_of_definitions_that_are_as_good_the_one_with_most_states_is_recommended():
    """A first step that all share, and one that each has for itself, both tell nothing."""
    rng = np.random.default_rng(0)
    paths: dict[str, Paths] = {"shared": [], "alone": [], "mixed": []}
    for number in range(24 * 8):
        good, other = (int(each) for each in rng.random(2) < 0.5)
        outcome = float(rng.random() < (0.9 if good else 0.1))
        for name, first, then in (
            ("shared", 0, good),
            ("alone", 9 + number, good),
            ("mixed", 0, other),
        ):
            paths[name].append((number // 8, outcome, [first, 1 + then, 3 + good]))
    told = {name: knowledge(of_name) for name, of_name in paths.items()}
    assert told["shared"].evidence().value == pytest.approx(told["alone"].evidence().value)
    assert recommended(told) == "alone"
    assert recommended({name: told[name] for name in ("mixed", "shared")}) == "shared"
