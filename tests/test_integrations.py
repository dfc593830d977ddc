"""The adapters of docs/integrations.md, on batches of the frameworks' shape.

Two trajectories of one task, x: hall -east-> kitchen -take-> won with reward 1, y: hall -west->
nowhere. Whether their steps are compared by return (GiGPO) or by distance to the goal (GraphGPO),
x and y differ by one in their episode and at the hall, so each part is ±1/√2, and the kitchen,
seen once, has the episode's part only.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.worlds import trajectory, write_store

DOCUMENT = Path(__file__).parent.parent / "docs" / "integrations.md"
HALF = 2**-0.5
EAST, TAKE, WEST = 2 * HALF, HALF, -2 * HALF

both = pytest.mark.parametrize("estimator", ["gigpo", "graphgpo"])


@pytest.fixture(scope="module")
def adapters() -> SimpleNamespace:
    """Return what the fences of the document define."""
    names: dict[str, Any] = {}
    fences = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    for fence in fences:
        exec(compile(fence, str(DOCUMENT), "exec"), names)
    return SimpleNamespace(**names)


def objects(*values: object) -> np.ndarray:
    """Return values as verl keeps them: an array of objects."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


@both
def test_verl_agent(adapters: SimpleNamespace, estimator: str):
    batch = {
        "uid": objects("g0", "g0", "g1", "g0"),
        "traj_uid": objects("x", "y", "z", "x"),
        "anchor_obs": objects("hall", "hall", "attic", "kitchen"),
        "rewards": objects(0.0, 0.0, 1.0, 1.0),
        "is_action_valid": np.array([True, True, True, True]),
    }
    found = adapters.step_advantages(batch, ["east", "west", "jump", "take"], estimator)
    # z is alone in its group.
    np.testing.assert_allclose(found, [EAST, WEST, 0, TAKE], rtol=1e-4)


def test_verl_agent_says_which_actions_were_invalid(adapters: SimpleNamespace):
    batch = {
        "uid": objects("g0", "g0", "g0"),
        "traj_uid": objects("x", "x", "y"),
        "anchor_obs": objects("hall", "hall", "hall"),
        "rewards": objects(0.0, 1.0, 0.0),
        "is_action_valid": np.array([False, True, False]),
    }
    found = adapters.step_advantages(batch, ["?", "east", "?"], "rewardflow")
    # Only the step that won gained: V goes from 0.9 to 1; the others were invalid and gained 0.
    gained = np.array([0.0, 0.1, 0.0])
    step = (gained - gained.mean()) / gained.std(ddof=1)
    np.testing.assert_allclose(found, step + np.array([HALF, HALF, -HALF]), rtol=1e-4)


@dataclass
class Rollout:
    """A rollout as prime-rl's algorithms see it."""

    id: str
    reward: float
    nodes: list[SimpleNamespace]
    advantages: list[float] = field(default_factory=list)

    def assign_advantages(self, values: list[float]) -> None:
        self.advantages = values


def told(content: str) -> SimpleNamespace:
    return SimpleNamespace(
        sampled=False, message=SimpleNamespace(content=content), mask=[False, False]
    )


def said(content: str) -> SimpleNamespace:
    """A sampled message: a token of the template, then two of the model."""
    return SimpleNamespace(
        sampled=True, message=SimpleNamespace(content=content), mask=[False, True, True]
    )


@both
def test_prime_rl(adapters: SimpleNamespace, estimator: str):
    start = [told("find the mug"), told("hall")]
    x = Rollout("x", 1.0, [*start, said("east"), told("kitchen"), said("take")])
    y = Rollout("y", 0.0, [*start, said("west")])
    adapters.score_group([x, y], estimator)
    quiet = [0.0] * 5
    np.testing.assert_allclose(x.advantages, [*quiet, EAST, EAST, 0, 0, 0, TAKE, TAKE], rtol=1e-4)
    np.testing.assert_allclose(y.advantages, [*quiet, WEST, WEST], rtol=1e-4)


@both
def test_trl(adapters: SimpleNamespace, estimator: str):
    def sample(state: str, action: str) -> SimpleNamespace:
        return SimpleNamespace(
            prompt=[
                {"role": "system", "content": "play"},
                {"role": "user", "content": state},
            ],
            completion=[{"role": "assistant", "content": action}],
            group_id=7,
            advantage=0.0,
        )

    east, take, west = (
        sample("hall", "east"),
        sample("kitchen", "take"),
        sample("hall", "west"),
    )
    adapters.set_advantages([[east, take], [west]], [1.0, 0.0], estimator)
    found = [east.advantage, take.advantage, west.advantage]
    np.testing.assert_allclose(found, [EAST, TAKE, WEST], rtol=1e-4)


@both
def test_a_store(adapters: SimpleNamespace, estimator: str, tmp_path: Path):
    steps = [
        *trajectory("x", "hall east kitchen take won", rewards=[0, 1], success=True),
        *trajectory("y", "hall west garden"),
    ]
    store = write_store(tmp_path / "s", steps, run_id="r1", iteration=3)
    found = adapters.advantage_of_step(store, "r1", 3, estimator)
    assert found == pytest.approx({("x", 0): EAST, ("x", 1): TAKE, ("y", 0): WEST}, rel=1e-4)
