"""A worked example of every estimator, to four digits."""

import numpy as np
import pytest

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.inputs.table import ANALOGIES, PAST
from graphcredit.credit.iteration.assemble import assemble
from tests.credit.assembled import assembled
from tests.worlds import step_table, worked_example

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
