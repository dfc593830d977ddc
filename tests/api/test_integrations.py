"""The adapters on batches of the frameworks' shape, and the blocks of their document.

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
import torch

import graphcredit
from graphcredit.estimators import GraphGpo
from graphcredit.integrations import StepCredit, prime_rl, trl_async_grpo, verl
from graphcredit.store.errors import CreditWarning, InputError, OptionError
from tests.worlds import trajectory, write_store

DOCUMENT = Path(__file__).parents[2] / "docs" / "integrations.md"
HALF = 2**-0.5
EAST, TAKE, WEST = 2 * HALF, HALF, -2 * HALF

both = pytest.mark.parametrize("estimator", ["gigpo", "graphgpo"])


@pytest.fixture(scope="module")
def document() -> SimpleNamespace:
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


class Tensors(dict[str, torch.Tensor]):
    """Tensors by name; like tensordict's `TensorDict`, it refuses `in`."""

    def __contains__(self, key: object) -> bool:
        raise NotImplementedError


def proto() -> SimpleNamespace:
    """Return a batch as verl-agent's `DataProto` has it; the trajectory z is alone in its group."""
    return SimpleNamespace(
        batch=Tensors(
            responses=torch.tensor([[5, 6, 7], [5, 8, 0], [9, 0, 0], [4, 4, 0]]),
            response_mask=torch.tensor([[1, 1, 1], [1, 1, 0], [1, 0, 0], [1, 1, 0]]),
        ),
        non_tensor_batch={
            "uid": objects("g0", "g0", "g1", "g0"),
            "traj_uid": objects("x", "y", "z", "x"),
            "anchor_obs": objects("hall", "hall", "attic", "kitchen"),
            "rewards": objects(0.0, 0.0, 1.0, 1.0),
            "episode_rewards": objects(1.0, 0.0, 1.0, 1.0),
            "is_action_valid": np.array([True, True, True, True]),
        },
    )


ACTIONS = ["east", "west", "jump", "take"]


@both
def test_verl_agent(estimator: str):
    found = verl.advantages(proto(), ACTIONS, StepCredit(estimator=estimator))
    expected = [[EAST] * 3, [WEST, WEST, 0], [0, 0, 0], [TAKE, TAKE, 0]]
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, torch.tensor(expected), rtol=1e-4, atol=1e-6)


def test_verl_agent_without_a_response_mask(document: SimpleNamespace):
    batch = proto()
    mask = batch.batch.pop("response_mask")
    batch.batch["attention_mask"] = torch.cat([torch.ones(4, 2, dtype=torch.long), mask], dim=1)
    tokenizer = SimpleNamespace(batch_decode=lambda ids, skip_special_tokens: ACTIONS)
    document.add_advantages(batch, tokenizer)
    expected = torch.tensor([[EAST] * 3, [WEST, WEST, 0], [0, 0, 0], [TAKE, TAKE, 0]])
    torch.testing.assert_close(batch.batch["advantages"], expected, rtol=1e-4, atol=1e-6)
    assert batch.batch["returns"] is batch.batch["advantages"]
    del batch.batch["attention_mask"]
    with pytest.raises(InputError, match="batch must have response_mask, or responses and"):
        verl.advantages(batch, ACTIONS)


def test_verl_agent_says_which_actions_were_invalid():
    fields = {
        "uid": objects("g0", "g0", "g0"),
        "traj_uid": objects("x", "x", "y"),
        "anchor_obs": objects("hall", "hall", "hall"),
        "rewards": objects(0.0, 1.0, 0.0),
        "is_action_valid": np.array([False, True, False]),
    }
    found = verl.step_advantages(fields, ["?", "east", "?"], StepCredit(estimator="rewardflow"))
    # Only the step that won gained: V goes from 0.9 to 1; the others were invalid and gained 0.
    gained = np.array([0.0, 0.1, 0.0])
    step = (gained - gained.mean()) / gained.std(ddof=1)
    np.testing.assert_allclose(found, step + np.array([HALF, HALF, -HALF]), rtol=1e-4)


def test_verl_agent_with_images_and_missing_observations():
    fields = proto().non_tensor_batch
    del fields["is_action_valid"]
    hall, other = np.zeros((2, 2, 3), np.uint8), np.ones((2, 2, 3), np.uint8)
    fields["anchor_obs"] = objects(hall, hall.copy(), None, other)
    found = verl.step_advantages(fields, ACTIONS, StepCredit(estimator="gigpo"))
    np.testing.assert_allclose(found, [EAST, WEST, 0, TAKE], rtol=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"traj_uid": None}, "found uid, anchor_obs, rewards.*without traj_uid"),
        ({"rewards": objects(1.0)}, "must have a value for each row: found .*'reward': 1"),
    ],
)
def test_verl_agent_names_the_field_that_is_not_right(change: dict[str, Any], message: str):
    fields = {k: v for k, v in (proto().non_tensor_batch | change).items() if v is not None}
    with pytest.raises(InputError, match=message):
        verl.step_advantages(fields, ACTIONS)


def test_tensors_of_another_number_of_rows_are_refused():
    batch = proto()
    batch.batch["response_mask"] = batch.batch["response_mask"][:2]
    with pytest.raises(InputError, match="must have a row for each of 4 steps: found 2"):
        verl.advantages(batch, ACTIONS)


@dataclass
class Node:
    """A node as verifiers has it."""

    message: Any
    parent: int | None
    sampled: bool = False
    mask: list[bool] = field(default_factory=lambda: [False, False])
    advantages: list[float] | None = None


def rollout(name: str, reward: float, *messages: Any) -> SimpleNamespace:
    """Return a rollout: text is told, a mapping is said, after a token of the template."""
    nodes = [
        Node({"role": "user", "content": message}, number - 1 if number else None)
        if isinstance(message, str | list)
        else Node(message, number - 1, sampled=True, mask=[False, True, True])
        for number, message in enumerate(messages)
    ]
    return SimpleNamespace(id=name, reward=reward, nodes=nodes)


def said(action: str) -> dict[str, Any]:
    """Return a tool call without text."""
    call = {"id": "1", "type": "function", "function": {"name": action, "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


@both
def test_prime_rl(estimator: str):
    x = rollout("x", 1.0, "find", "hall", said("east"), "kitchen", said("take"))
    y = rollout("y", 0.0, "find", "hall", said("west"))
    prime_rl.score_group([x, y], StepCredit(estimator=estimator))
    found = [node.advantages for each in (x, y) for node in each.nodes]
    told = None
    expected = [told, told, [EAST] * 2, told, [TAKE] * 2, told, told, [WEST] * 2]
    assert found == [e if e is None else pytest.approx(e, rel=1e-4) for e in expected]


def test_prime_rl_with_parts_and_without_content(tmp_path: Path):
    parts = [{"type": "text", "text": "hall"}, {"type": "image_url", "image_url": {"url": "u"}}]
    x = rollout("x", 1.0, parts, {"role": "assistant"}, "kitchen", said("take"))
    y = rollout("y", 0.0, parts, said("west"))
    with graphcredit.StepRecorder(
        tmp_path / "s", run_id="r0", iteration=0, worker_id="w"
    ) as recorder:
        credit = StepCredit(estimator="gigpo", recorder=recorder)
        prime_rl.score_group([x, y], credit, task_id="mug")
    rows = graphcredit.scan(tmp_path / "s", "steps").sort("trajectory_id", "step_index").collect()
    seen = rows["state"][0]
    assert re.fullmatch(r"hall\n\[image_url [0-9a-f]{12}\]", seen)
    assert rows.select("task_id", "state", "action", "reward", "success").rows() == [
        ("mug", seen, "", 0.0, None),
        ("mug", "kitchen", "take({})", 1.0, True),
        ("mug", seen, "west({})", 0.0, False),
    ]
    assert x.nodes[1].advantages == pytest.approx([EAST] * 2, rel=1e-4)


def test_prime_rl_with_a_parent_that_is_none():
    x = rollout("x", 1.0, "hall", said("east"))
    x.nodes[1].parent = 4
    with pytest.raises(InputError, match="parent of node 1 of rollout x must be an earlier node"):
        prime_rl.score_group([x])
    prime_rl.score_group([])


def sample(state: Any, *completion: Any) -> SimpleNamespace:
    prompt = [{"role": "system", "content": "play"}, {"role": "user", "content": state}]
    return SimpleNamespace(prompt=prompt, completion=[*completion], group_id=7, advantage=0.0)


@both
def test_trl_samples(estimator: str):
    east, take = sample("hall", said("east")), sample("kitchen", said("take"))
    west = sample([{"type": "text", "text": "hall"}], {"role": "assistant", "content": "west"})
    # Only what came after the policy's last message is the state.
    take.prompt[1:1] = [*east.prompt[1:], *east.completion]
    credit = StepCredit(estimator=estimator)
    trl_async_grpo.set_advantages([[east, take], [west]], [1.0, 0.0], credit)
    found = [east.advantage, take.advantage, west.advantage]
    np.testing.assert_allclose(found, [EAST, TAKE, WEST], rtol=1e-4)


def test_trl_samples_that_are_not_right():
    with pytest.raises(InputError, match="sample 1 of episode 0 must have a message"):
        trl_async_grpo.set_advantages([[sample("hall", said("east")), sample("kitchen")]], [1.0])
    with pytest.raises(InputError, match="got 1 episodes, 2 rewards"):
        trl_async_grpo.set_advantages([[]], [1.0, 0.0])


def test_empty_batches_are_credited_with_nothing():
    trl_async_grpo.set_advantages([], [])
    prime_rl.score_group([rollout("x", 0.0, "hall")])
    fields = {name: objects() for name in verl.NEEDED}
    assert verl.step_advantages(fields, []).tolist() == []


def test_a_batch_is_credited_by_one_estimator():
    with pytest.raises(OptionError, match="credited by one estimator: got grpo, rloo"):
        verl.step_advantages(proto().non_tensor_batch, ACTIONS, StepCredit(estimator="grpo,rloo"))


def test_the_options_of_step_credit_matter():
    fields = proto().non_tensor_batch
    fields["anchor_obs"] = objects("Hall", "hall", "attic", "kitchen")
    apart = verl.step_advantages(fields, ACTIONS, StepCredit(estimator="gigpo"))
    np.testing.assert_allclose(apart, [HALF, -HALF, 0, TAKE], rtol=1e-4)
    merge = graphcredit.MergeSettings(normalise=("casefold",))
    together = verl.step_advantages(fields, ACTIONS, StepCredit(estimator="gigpo", merge=merge))
    np.testing.assert_allclose(together, [EAST, WEST, 0, TAKE], rtol=1e-4)
    # A success is worth two: nobody succeeds, and the graph has no goal.
    options = GraphGpo(distance_discount=0.5)
    with pytest.warns(CreditWarning, match="graphgpo knows who won, and no returns: 1 of 1 pair"):
        never = verl.step_advantages(fields, ACTIONS, StepCredit(estimator=options, success_at=2.0))
    np.testing.assert_allclose(never, [HALF, -HALF, 0, HALF], rtol=1e-4)


@both
def test_a_store(document: SimpleNamespace, estimator: str, tmp_path: Path):
    steps = [
        *trajectory("x", "hall east kitchen take won", rewards=[0, 1], success=True),
        *trajectory("y", "hall west garden"),
    ]
    write_store(tmp_path / "s", steps, run_id="r1", iteration=3)
    found = document.advantage_of_step(tmp_path / "s", "r1", 3, estimator)
    assert found == pytest.approx({("x", 0): EAST, ("x", 1): TAKE, ("y", 0): WEST}, rel=1e-4)


def test_the_other_blocks_of_the_document(document: SimpleNamespace):
    east, west = sample("hall", said("east")), sample("hall", said("west"))
    document.before_queue([[east], [west]], [1.0, 0.0])
    assert east.advantage == pytest.approx(2 * HALF, rel=1e-4)
    x, y = rollout("x", 1.0, "hall", said("east")), rollout("y", 0.0, "hall", said("west"))
    with pytest.raises(StopIteration):
        document.score_group(None, [x, y]).send(None)
    assert y.nodes[1].advantages == pytest.approx([-2 * HALF] * 2, rel=1e-4)
