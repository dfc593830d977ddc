"""MileGPO on worlds small enough to work out by hand."""

from typing import Any

import numpy as np
import pytest

from graphcredit.credit.estimators.milegpo import MileGpo
from graphcredit.credit.iteration.assemble import assemble
from tests.worlds import step_table, trajectory

Row = dict[str, Any]

FORK: list[Row] = [
    *trajectory("p", "S a M b won", success=True, rewards=[0, 1]),
    *trajectory("q", "S c T d T d X"),
]
"""One wins, one turns in T and is lost. p̄ = 1/2.

Edges S→M, M→goal, S→T, T→T, T→X: degrees S 2, M 2, goal 1, T 4, X 1; of at most 4.
"""


def parts(rows: list[Row], **options: Any) -> dict[str, list[float]]:
    """Return the parts of MileGPO's credit, step by step."""
    found = MileGpo(**options).assign(assemble(step_table(rows)).batch)
    return {name: values.tolist() for name, values in found.items()}


def test_milestones_are_where_successes_pass_and_traps_where_none_does():
    milestone, trap = MileGpo().scores(assemble(step_table(FORK)).batch)
    # Nodes: S, M, T, X, goal. All successes visit S and M. S wins half, as the group; M wins all.
    s, m = 0.25 + 0.25 * 2 / 4, 0.5 * (1 - 1 / 2) + 0.25 + 0.25 * 2 / 4
    assert milestone.tolist() == pytest.approx([s, m, 0, 0, 0])
    # The only failure visits T and X. One of two visits of T is a return.
    assert trap.tolist() == pytest.approx([0, 0, 0.5 / 2 + 0.5 / 2, 0.5 / 2, 0])


def test_potentials_fade_with_the_distance_to_the_best_milestone():
    batch = assemble(step_table(FORK)).batch
    options = MileGpo(decay=0.5)
    milestone, trap = options.scores(batch)
    # From S: itself .375, or M .625 / 2; T .5 / 2, or X .25 / 4. Nothing is behind the goal.
    found = options.potential(batch, milestone)
    assert found.tolist() == pytest.approx([0.375, 0.625, 0, 0, 0])
    assert options.potential(batch, trap).tolist() == pytest.approx([0.25, 0, 0.5, 0.25, 0])
    nearly = MileGpo(decay=0.9)
    assert nearly.potential(batch, milestone)[0] == pytest.approx(0.9 * 0.625)


def test_a_step_is_worth_its_way_its_milestones_and_its_branch():
    """S→M: .1 to go, δ⁺ = .25, and it wins where the other branch loses. S→T: δ⁻ = .25.

    M→goal leaves a milestone, which costs nothing; T→X leaves a trap, which gains nothing.
    """
    found = parts(FORK, decay=0.5, normalize="none")
    to_m = 10 * (0.1 + 0.5 * 0.25 + 0.5 * 1)
    to_t = 10 * (0 - 0.5 * 0.25 - 0.5 * 1)
    assert found["step_reward"] == pytest.approx([to_m, 10, to_t, 0, 0])
    half = (to_m - to_t) / 2
    assert found["step_advantage"] == pytest.approx([half, 0, -half, 0, 0])
    np.testing.assert_allclose(found["advantage"], [half + 0.5, 0.5, -half - 0.5, -0.5, -0.5])


def test_a_branch_is_compared_with_the_mean_of_the_others():
    """A wins 1 of 2, B all, C none; q counts once, though it takes its branch twice."""
    rows = [
        *trajectory("p", "S a A a won", success=True),
        *trajectory("q", "S a A b S a A b X"),
        *trajectory("r", "S b B a won", success=True),
        *trajectory("s", "S c C a X"),
    ]
    only = {"distance_discount": 1e-9, "shaping": 0.0, "success_reward": 1.0, "branch_weight": 1.0}
    found = np.array(parts(rows, **only)["step_reward"])
    assert found[[0, 2, 4, 6, 8]] == pytest.approx([0, 0, 0, 0.75, -0.75], abs=1e-8)
