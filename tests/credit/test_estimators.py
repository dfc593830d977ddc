"""Every estimator against its slow twin and by hand, and the contract that all of them keep."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcredit.credit.estimators.table import ESTIMATORS, Estimator, configure
from graphcredit.credit.inputs.table import ANALOGIES, PAST
from graphcredit.credit.iteration.assemble import assemble
from graphcredit.credit.steps.arrays import Floats
from graphcredit.store.options import options_from_text
from tests.credit import reference, reference_reach, reference_sapo, reference_turns
from tests.credit.assembled import assembled
from tests.credit.entity_world import world_of_the_random_logs
from tests.credit.strategies import logs
from tests.examples import examples
from tests.worlds import step_table, trajectory, worked_example

VARIANTS: dict[str, list[dict[str, Any]]] = {
    "grpo": [{}, {"normalize": "none"}, {"stat_over": "steps"}],
    "rloo": [{}],
    "discounted": [{}, {"gamma": 0.5, "baseline": "group"}],
    "gigpo": [{}, {"normalize": "none", "stat_over": "steps"}, {"gamma": 0.5, "omega": 0.3}],
    "turn_credit": [{}, {"gamma": 0.0, "beta": 2.0}, {"gamma": 1.0}],
    "turn_rloo": [{}, {"gamma": 0.5}],
    "rewardflow": [
        {},
        {"normalize": "none", "gamma": 0.5},
        {"stat_over": "steps", "step_weight": 2.0, "episode_weight": 0.5},
        {"gamma": 1.0},
        {"worth": "returns"},
        {"worth": "returns", "gamma": 1.0, "normalize": "none"},
    ],
    "graphgpo": [
        {},
        {"normalize": "none", "distance_discount": 0.8},
        {"stat_over": "steps", "success_reward": 1.0, "step_weight": 2.0, "episode_weight": 0.0},
        {"worth": "returns"},
        {"worth": "returns", "distance_discount": 0.8, "normalize": "none"},
    ],
    "spo3": [{}, {"normalize": "none", "alpha": 3.0}, {"xi": 1, "zeta": 0.5, "omega_k": 1.0}],
    "hgpo": [{}, {"normalize": "none"}, {"gamma": 0.5, "history": 0}, {"length_alpha": 2.0}],
    "sapo": [
        {},
        {"normalize": "none", "decay": 1.0},
        {"stat_over": "steps", "decay": 3.5, "strength": 2.0},
    ],
    "g2po": [{}, {"normalize": "none", "gamma": 0.8}, {"step_weight": 0.5, "invalid_penalty": 2.0}],
    "graft": [
        {},
        {"normalize": "none", "gamma": 0.8, "gae_lambda": 0.5, "hops": 3},
        {"hops": 7, "edge_counts": "steps"},
        {"failure_ends": "apart", "gamma": 1.0, "gae_lambda": 0.6, "stat_over": "steps"},
        {"gae_lambda": 0.0, "edge_counts": "steps", "step_weight": 2.0, "episode_weight": 0.5},
    ],
    "milegpo": [
        {},
        {"normalize": "none", "distance_discount": 0.8, "decay": 0.5, "branch_weight": 0.0},
        {"shaping": 2.0, "excess_weight": 3.0, "degree_weight": 0.0, "loop_weight": 4.0},
        {
            "success_reward": 1.0,
            "coverage_weight": 0.0,
            "failure_weight": 0.0,
            "stat_over": "steps",
        },
    ],
    "reach": [{}, {"normalize": "none", "doubt": 2.5}],
}
CASES = [(row, options) for row in ESTIMATORS for options in VARIANTS.get(row.name, [{}])]

WORLD = world_of_the_random_logs()

Key = tuple[str, str, int]


def compute(
    rows: list[dict[str, Any]], row: Estimator, options: dict[str, Any], part: str = "advantage"
) -> dict[Key, float]:
    """Return {(task, trajectory, step): value} of the fast implementation."""
    keys, parts = compute_parts(rows, row, options)
    return dict(zip(keys, parts[part].tolist(), strict=True))


def compute_parts(
    rows: list[dict[str, Any]], row: Estimator, options: dict[str, Any]
) -> tuple[list[Key], Mapping[str, Floats]]:
    """Return (task, trajectory, step) of each value, and the values of all parts."""
    estimator = options_from_text(
        row.options, {name: str(value) for name, value in options.items()}, owner=row.name
    )
    table = step_table(rows)
    assembly = assembled(table, row.inputs, WORLD, columns=row.reads)
    parts = estimator.assign(assembly.batch)
    assert tuple(parts) == row.writes
    keys = [(r["task_id"], r["trajectory_id"], r["step_index"]) for r in rows]
    return [keys[origin] for origin in assembly.steps.row.tolist()], parts


def slow_advantages(
    rows: list[dict[str, Any]], name: str, options: dict[str, Any]
) -> dict[Key, float]:
    slow: dict[str, Callable[[reference.Group, str], dict[tuple[str, int], float]]] = {
        "sapo": lambda group, task: reference_sapo.sapo(group, WORLD, task, **options),
        "reach": lambda group, task: reference_reach.reach(group, **options),
        **{
            name: lambda group, _, twin=twin: twin(group, **options)
            for name, twin in reference_turns.ESTIMATORS.items()
        },
    }
    if name not in slow:
        return reference.advantages(rows, name, **options)
    return {
        (task, trajectory, index): value
        for task, group in reference.groups_of(rows).items()
        for (trajectory, index), value in slow[name](group, task).items()
    }


@pytest.mark.parametrize(
    ("row", "options"), CASES, ids=lambda case: getattr(case, "name", str(case))
)
@settings(max_examples=examples(30))
@given(rows=logs())
def test_the_fast_implementation_agrees_with_the_slow_one(
    row: Estimator, options: dict[str, Any], rows: list[dict[str, Any]]
):
    fast = compute(rows, row, options)
    slow = slow_advantages(rows, row.name, options)
    assert fast.keys() == slow.keys()
    for key, value in slow.items():
        assert fast[key] == pytest.approx(value, rel=1e-6, abs=1e-9), key


REACH = next(row for row in ESTIMATORS if row.name == "reach")


@settings(max_examples=examples(100))
@given(rows=logs())
def test_each_part_of_reach_agrees_with_the_slow_one(rows: list[dict[str, Any]]):
    keys, parts = compute_parts(rows, REACH, {})
    for task, group in reference.groups_of(rows).items():
        for part, slow in reference_reach.reach_parts(group).items():
            fast = dict(zip(keys, parts[part].tolist(), strict=True))
            for (name, index), value in slow.items():
                expected = pytest.approx(value, rel=1e-6, abs=1e-9)
                assert fast[task, name, index] == expected, (part, name, index)


@pytest.mark.parametrize("rewards", [(0.1, 0.2, 0.3), (1.0, 2.0, 3.0)])
@pytest.mark.parametrize("names", ["xyz", "zyx", "yxz"])
def test_hgpo_leaves_out_a_length_at_which_a_step_is_average(
    rewards: tuple[float, ...], names: str
):
    """The middle step is at the mean of the three that leave S, and the better of two after P."""
    steps = [
        step
        for name, first, reward in zip(names, "PPQ", rewards, strict=True)
        for step in trajectory(name, f"{first} a S a D", rewards=[0.0, reward])
    ]
    rows = step_table(steps).to_pylist()
    row = next(row for row in ESTIMATORS if row.name == "hgpo")
    options = {"history": 1, "normalize": "std"}
    found = compute(rows, row, options)["t0", names[1], 1]
    assert found == pytest.approx(1.0, abs=1e-4)
    assert found == pytest.approx(slow_advantages(rows, "hgpo", options)["t0", names[1], 1])


KNOWS_THE_WHOLE_RUN = {"spo3"}
"""Estimators that a group does not determine: 3SPO counts every trajectory that has ended."""

READS_NAMES = {"reach", "sapo", "spo3"}
"""Reach and SAPO read texts, 3SPO breaks ties of time by the names of trajectories."""


@pytest.mark.parametrize("row", ESTIMATORS, ids=lambda row: row.name)
@settings(max_examples=examples(30))
@given(rows=logs(), seed=st.randoms(use_true_random=False))
def test_only_the_steps_of_a_group_decide(row: Estimator, rows: Any, seed: Any):
    """The order of rows, other groups, and names do not matter; and every value is finite."""
    keys, parts = compute_parts(rows, row, {})
    assert all(np.isfinite(parts[name]).all() for name in row.writes)
    credit = dict(zip(keys, parts["advantage"].tolist(), strict=True))
    shuffled = list(rows)
    seed.shuffle(shuffled)
    assert compute(shuffled, row, {}) == credit
    if row.name not in KNOWS_THE_WHOLE_RUN:
        for task in {r["task_id"] for r in rows}:
            alone = compute([r for r in rows if r["task_id"] == task], row, {})
            expected = {key: value for key, value in credit.items() if key[0] == task}
            assert alone == pytest.approx(expected, rel=1e-9, abs=1e-12)
    if row.name not in READS_NAMES:
        renamed = {(t, _backwards(name), step): x for (t, name, step), x in credit.items()}
        assert compute([*map(_renamed, rows)], row, {}) == pytest.approx(
            renamed, rel=1e-6, abs=1e-9
        )


def _backwards(name: str) -> str:
    group, number = name.split("-")
    return f"{group}-{9 - int(number)}"


def _renamed(row: dict[str, Any]) -> dict[str, Any]:
    """Return a step with other names of its states and its trajectory."""
    states = {column: f"<{row[column][::-1]}>" for column in ("state", "next_state")}
    return row | states | {"trajectory_id": _backwards(row["trajectory_id"])}


TELLS_EQUAL_TRAJECTORIES_APART = {"discounted", "g2po", "reach", "spo3", "turn_credit"}
"""G2PO and reach compare the states of a group with each other, 3SPO a trajectory with those before
it, and turn_credit the steps of a trajectory; the discounted return is compared with nothing."""


@pytest.mark.parametrize(
    "row",
    [row for row in ESTIMATORS if row.name not in TELLS_EQUAL_TRAJECTORIES_APART],
    ids=lambda row: row.name,
)
@settings(max_examples=examples(30))
@given(rows=logs())
def test_equal_trajectories_get_zero(row: Estimator, rows: Any):
    """Copies of one trajectory have equal returns everywhere: nothing to prefer."""
    names = sorted({r["trajectory_id"] for r in rows})
    one = [r for r in rows if r["trajectory_id"] == names[0]]
    states = [r["state"] for r in one]
    if len(set(states)) < len(states):
        one = one[:1]
        one[0] = one[0] | {"success": True, "terminated": True, "truncated": False}
    copies = [r | {"trajectory_id": f"copy-{i}"} for i in range(3) for r in one]
    assert set(compute(copies, row, {}).values()) <= {0.0}


@pytest.mark.parametrize("name", [row.name for row in ESTIMATORS])
def test_an_empty_log_has_no_credit(name: str):
    row = next(r for r in ESTIMATORS if r.name == name)
    assert compute([], row, {}) == {}


EXPECTED = {
    "grpo": [1.1547, 1.1547, 1.1547, 1.1547, -0.5687, -0.5687, -0.5859, -0.5859],
    "rloo": [10.05, 10.05, 10.05, 10.05, -4.95, -4.95, -5.1, -5.1],
    "discounted": [7.29, 8.1, 9, 10, 0, 0, -0.1, 0],
    "gigpo": [2.1547, 1.1547, 2.3407, 1.8618, -1.2907, -1.2758, -1.3280, -1.3079],
    "hgpo": [1.1181, 0, 1.3260, 1, -0.8072, -1, -0.8297, -0.8072],
    "spo3": [0.5792, 0, 0.5792, 0.7071, 0.3555, -0.7071, -1.7710, 0.2571],
    "rewardflow": [0.1655, 1.1547, 2.1649, 1.8618, 0.4329, -1.2845, -0.6194, -1.5665],
    "reach": [0.9210, 1.3868, 1.4611, 1.9426, -0.2316, -1.1372, -0.3794, -0.2818],
    "graft": [1.5358, 2.1547, 0.0201, 1.8618, -1.7032, -1.2758, 0.1674, -0.2048],
    "milegpo": [1.3476, 1.1547, 1.8298, 1.8618, 0.1064, -1.2758, -2.322, -0.393],
    "graphgpo": [0.3692, 1.1547, 2.2474, 1.8618, 0.5240, -1.2758, -1.2006, -1.3714],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_advantages_of_the_worked_example(name: str):
    table = step_table(worked_example())
    assembly = assembled(table, [ANALOGIES, PAST], columns=["terminated"])
    assert assembly.steps.row.tolist() == list(range(8))
    (options,) = configure([name]).values()
    advantage = options.assign(assembly.batch)["advantage"]
    np.testing.assert_allclose(advantage, EXPECTED[name], atol=5.1e-5)


def test_the_distances_of_the_worked_example():
    batch = assemble(step_table(worked_example())).batch
    # Nodes by first appearance: A, B, C, D, and the goal last.
    assert batch.graph.goal_distance.tolist() == [2, 3, 1, np.inf, 0]
    assert batch.state_of_step.tolist() == [0, 1, 0, 2, 0, 2, 0, 0]
    assert batch.target_of_step.tolist() == [1, 0, 2, 4, 2, 3, 0, 1]
