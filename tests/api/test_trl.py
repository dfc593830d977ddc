"""TRL itself trains a tiny random model on the advantages of `compute`.

The rollouts are played by hand, so that the advantages are known: x walks from the hall (the
prompt) east, sees the kitchen and takes the mug, which is worth 1; y walks west, which is worth 0.
By GraphGPO x and y differ by one in their episode and at the hall, so each part is ±1/√2, and the
kitchen, seen once, has the episode's part only. Each word is a token or more; what a place looks
like is masked.
"""

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import torch

import graphcredit
from graphcredit.integrations import StepCredit

pytestmark = [
    pytest.mark.integrations,
    pytest.mark.filterwarnings("ignore"),  # those of TRL and what it imports
]

HALF = 2**-0.5


@pytest.fixture(scope="module")
def rollouts() -> ModuleType:
    """Import TRL where these tests run only: it takes six seconds of every process."""
    pytest.importorskip(
        "trl", reason="TRL is not installed: pip install 'graphcredit[integrations]'"
    )
    return import_module("tests.api.trl_rollouts")


def test_the_loss_is_computed_of_the_advantages_of_the_turns_that_are_recorded(
    tmp_path: Path, rollouts: ModuleType
):
    played = rollouts.Played()
    with graphcredit.StepRecorder(
        tmp_path / "s", run_id="grpo", iteration=0, worker_id="w"
    ) as recorder:
        credit = StepCredit(estimator="graphgpo", recorder=recorder)
        training = rollouts.trainer(tmp_path, played, credit)
        before = {name: value.clone() for name, value in training.model.named_parameters()}
        training.train()
    assert training.state.global_step == 2
    x, y = played.spread(2 * HALF, 0, HALF), played.spread(-2 * HALF)
    width = max(len(x), len(y))
    expected = torch.tensor([row + [0.0] * (width - len(row)) for row in (x, y)])
    for seen, loss in training.seen:
        rows = seen["advantages"]
        # TRL shuffles the rows of a batch.
        order = [0, 1] if rows[0, 0] > 0 else [1, 0]
        torch.testing.assert_close(rows[order], expected, rtol=1e-4, atol=1e-6)
        # The policy has not moved since it sampled, so each ratio is 1 and the loss is minus the
        # mean over completions of the mean advantage of their sampled tokens.
        mask = (seen["completion_mask"] * seen["tool_mask"]).float()
        means = (rows * mask).sum(1) / mask.sum(1)
        torch.testing.assert_close(loss, -means.mean(), rtol=1e-4, atol=1e-6)
        assert abs(float(loss)) > 0.01
    moved = [
        name for name, value in training.model.named_parameters() if (value != before[name]).any()
    ]
    assert moved
    logged = list(training._logs["advantages"])
    assert sorted(logged) == pytest.approx([-2 * HALF, sum(x) / sum(map(bool, x))], rel=1e-4)
    rows = graphcredit.scan(tmp_path / "s", "steps").collect()
    steps = [("hall", "east", 0), ("kitchen", "take", 1), ("hall", "west", 0)] * 2
    found = zip(rows["state"], rows["action"], rows["reward"], strict=True)
    assert sorted(found) == sorted(steps)
    assert rows["task_id"].n_unique() == 2


def test_a_group_of_equal_completions_moves_nothing(tmp_path: Path, rollouts: ModuleType):
    played = rollouts.Played()
    played.play = lambda is_x: rollouts.Played.play(played, True)
    training = rollouts.trainer(tmp_path, played, StepCredit(estimator="graphgpo"))
    before = {name: value.clone() for name, value in training.model.named_parameters()}
    training.train()
    assert all((seen["advantages"] == 0).all() for seen, _ in training.seen)
    assert all((value == before[name]).all() for name, value in training.model.named_parameters())
