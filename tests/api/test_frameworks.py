"""Each adapter on its framework's current classes, where they are installed.

Two rollouts of one task, x: hall -east-> kitchen -take-> worth 1, y: hall -west-> worth 0. By
GiGPO x and y differ by one in their episode and at the hall, so each part is ±1/√2, and the
kitchen, seen once, has the episode's part only.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from graphcredit.integrations import StepCredit, art, skyrl, verl

pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]

HALF = 2**-0.5
EAST, TAKE, WEST = 2 * HALF, HALF, -2 * HALF
GIGPO = StepCredit(estimator="gigpo")

WORDS = ["<pad>", "find", "hall", "east", "kitchen", "take", "west"]


def ids(text: str) -> list[int]:
    return [WORDS.index(word) for word in text.split()]


class Tokenizer:
    """A word is a token."""

    pad_token_id = 0

    def decode(self, tokens: list[int], **_: Any) -> str:
        return " ".join(WORDS[token] for token in tokens)


@pytest.fixture
def verl_trainer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return what makes advantages of the outputs of agent loops by verl's v1 trainer."""
    pytest.importorskip("verl.trainer.ppo.v1.trainer_base", reason="verl is not installed")
    from omegaconf import OmegaConf
    from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput
    from verl.trainer.ppo.v1 import trainer_base
    from verl.trainer.ppo.v1.agent_loop_tq import list_of_dict_to_tensordict

    KVBatchMeta = trainer_base.KVBatchMeta  # noqa: N806
    from graphcredit.integrations import verl_plugin  # noqa: F401 (registers, as verl's import does)

    def computed(estimator: str, outputs: dict[str, Any], **options: Any) -> Any:
        fields = []
        for key, (prompt, response, mask, reward, extra) in outputs.items():
            output = AgentLoopOutput(
                prompt_ids=ids(prompt),
                response_ids=ids(response),
                response_mask=mask,
                reward_score=reward,
                metrics=AgentLoopMetrics(),
                extra_fields=extra,
            )
            fields.append(output.as_dict() | {"uid": key.rsplit("_", 2)[0]})
        kept: dict[str, Any] = {}

        def kv_batch_put(keys: Any, partition_id: str, fields: Any) -> Any:
            kept.update(fields.items())
            return KVBatchMeta(partition_id=partition_id, keys=keys, tags=[{}] * len(keys))

        def kv_batch_get(keys: Any, partition_id: str, select_fields: list[str]) -> Any:
            names = [name for name in select_fields if name in fields[0]]
            return list_of_dict_to_tensordict(fields).select(*names)

        queue = SimpleNamespace(kv_batch_get=kv_batch_get, kv_batch_put=kv_batch_put)
        monkeypatch.setattr(trainer_base, "tq", queue)
        trainer: Any = object.__new__(trainer_base.get_trainer_cls("sync"))
        algorithm = {
            "adv_estimator": estimator,
            "use_kl_in_reward": False,
            "gamma": 1.0,
            "lam": 1.0,
            "graphcredit": options,
        }
        trainer.config = OmegaConf.create(
            {"algorithm": algorithm, "actor_rollout_ref": {"rollout": {"n": 2}}}
        )
        trainer.tokenizer = Tokenizer()
        batch = KVBatchMeta(partition_id="train", keys=list(outputs), tags=[{}] * len(outputs))
        trainer._compute_advantage(batch, metrics={})
        return [row.tolist() for row in kept["advantages"].unbind()]

    return computed


def test_verl_rows_with_many_turns(verl_trainer: Callable[..., Any]):
    found = verl_trainer(
        "graphcredit.gigpo",
        {
            "a_b_0_0": ("find hall", "east kitchen take", [1, 0, 1], 1.0, {}),
            "a_b_1_0": ("find hall", "west", [1], 0.0, {}),
        },
    )
    assert found == [pytest.approx([EAST, 0, TAKE], rel=1e-4), pytest.approx([WEST], rel=1e-4)]


def test_verl_a_row_for_each_turn(verl_trainer: Callable[..., Any]):
    found = verl_trainer(
        "graphcredit.gigpo",
        {  # moved by balancing, the second turn first
            "t_0_1": ("find hall east kitchen", "take take", [1, 1], 1.0, {}),
            "t_1_0": ("find hall", "west", [1], 0.0, {}),
            "t_0_0": ("find hall", "east", [1], 1.0, {}),
        },
    )
    expected = [[TAKE] * 2, [WEST], [EAST]]
    assert found == [pytest.approx(values, rel=1e-4) for values in expected]


def test_skyrl(monkeypatch: pytest.MonkeyPatch):
    """A row is a turn; SkyRL pads the batch with a copy of its first row."""
    # SkyRL is for Python 3.12: a type of it that the test does not use needs that of pydantic.
    monkeypatch.setattr("pydantic._internal._generate_schema._SUPPORTS_TYPEDDICT", True)
    pytest.importorskip("skyrl.train.trainer", reason="SkyRL is not installed")
    from skyrl.backends.skyrl_train.training_batch import (
        TrainingInputBatch,
        pad_training_input_batch,
    )
    from skyrl.train.dataset.preprocess import convert_prompts_responses_to_batch_tensors
    from skyrl.train.trainer import RayPPOTrainer

    prompts = [ids("find hall"), ids("find hall east kitchen"), ids("find hall")]
    responses = [ids("east"), ids("take take"), ids("west")]
    ones = [[1] * len(response) for response in responses]
    rewards = [[0.0], [0.0, 1.0], [0.0]]
    sequences, seen, is_response, rewarded, mask, _, _ = convert_prompts_responses_to_batch_tensors(
        Tokenizer(), prompts, responses, rewards, ones
    )
    batch = TrainingInputBatch(
        {
            "sequences": sequences,
            "attention_mask": seen,
            "response_mask": is_response,
            "rewards": rewarded,
            "loss_mask": mask,
            "values": None,
        }
    )
    batch.metadata = {
        "uids": ["t"] * 3,
        "is_last_step": [False, True, True],
        "avg_response_length": 1.0,
    }
    batch = pad_training_input_batch(batch, 1)
    trainer: Any = object.__new__(skyrl.with_credit(RayPPOTrainer, GIGPO))
    algorithm = SimpleNamespace(
        advantage_estimator="grpo", gamma=1.0, lambd=1.0, grpo_norm_by_std=True
    )
    trainer.cfg = SimpleNamespace(
        generator=SimpleNamespace(step_wise_trajectories=True),
        trainer=SimpleNamespace(algorithm=algorithm),
    )
    trainer.tokenizer, trainer.all_metrics, trainer.global_step = Tokenizer(), {}, 1
    found = trainer.compute_advantages_and_returns(batch)
    expected = torch.tensor([[0, EAST], [TAKE, TAKE], [0, WEST], [0, 0]])
    torch.testing.assert_close(found["advantages"], expected, rtol=1e-4, atol=1e-6)
    assert found["returns"] is found["advantages"] or found["returns"].equal(found["advantages"])
    assert "loss/avg_final_rewards" in trainer.all_metrics
