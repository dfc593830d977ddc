# pyright: reportMissingImports=false
"""Each adapter on its framework's current classes, where they are installed; the world of hall.py.

Each batch that a framework makes has a record, which the adapter gets where it is not installed.
NeMo-RL has `test_nemo_rl.py`, slime `test_slime.py`, TRL `test_trl.py`.
"""

import asyncio
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from graphcredit.integrations import art, prime_rl, rllm, skyrl, verl
from graphcredit.store.errors import InputError, OptionError
from tests.api.hall import EAST, GIGPO, TAKE, WEST, Tokenizer, check_record, ids, read_record

pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]

MODEL = Path(__file__).parent / "tiny_policy"
READ = ["prompts", "responses", "response_mask", "extra_fields"]
"""Of verl's rows, what the adapter reads."""


@pytest.fixture
def verl_trainer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return what makes advantages of the outputs of agent loops by verl's v1 trainer."""
    pytest.importorskip("verl", reason="verl is not installed")
    from omegaconf import OmegaConf
    from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput
    from verl.trainer.ppo import core_algos
    from verl.trainer.ppo.padding_utils import construct_minimal_padding_template
    from verl.trainer.ppo.v1 import trainer_base
    from verl.trainer.ppo.v1.agent_loop_tq import list_of_dict_to_tensordict

    KVBatchMeta = trainer_base.KVBatchMeta  # noqa: N806
    import_module("graphcredit.integrations.verl_plugin")  # as verl's import does

    def computed(estimator: str, outputs: dict[str, Any], record: str = "", **options: Any) -> Any:
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
        # A batch is filled up by copies of its first row, whose mask and reward are 0.
        fill, _ = construct_minimal_padding_template(fields[0], {}, eos_token_id=1)
        fields.append({name: fill[name] for name in fields[0]} | {"uid": "pad9"})
        keys = [*outputs, "pad9_0_0"]
        kept: dict[str, Any] = {}

        def kv_batch_put(keys: Any, partition_id: str, fields: Any) -> Any:
            kept.update(fields.items())
            return KVBatchMeta(partition_id=partition_id, keys=keys, tags=[{}] * len(keys))

        def kv_batch_get(keys: Any, partition_id: str, select_fields: list[str]) -> Any:
            names = [name for name in select_fields if name in fields[0]]
            return list_of_dict_to_tensordict(fields).select(*names)

        def advantages(**given: Any) -> Any:
            if record:
                rows = kv_batch_get(keys, "", READ)
                read = {name: list(rows[name]) for name in READ if name in fields[0]}
                handed = {name: given[name] for name in ("token_level_rewards", "response_mask")}
                check_record(record, {"keys": keys, "rows": read, "handed": handed})
            return theirs(**given)

        theirs = core_algos.ADV_ESTIMATOR_REGISTRY[estimator]
        monkeypatch.setitem(core_algos.ADV_ESTIMATOR_REGISTRY, estimator, advantages)
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
        batch = KVBatchMeta(partition_id="train", keys=keys, tags=[{}] * len(keys))
        trainer._compute_advantage(batch, metrics={})
        *rows, filled = [row.tolist() for row in kept["advantages"].unbind()]
        assert filled == [0.0]
        assert kept["advantages"].dtype == torch.float32
        return rows

    return computed


def test_verl_rows_with_many_turns(verl_trainer: Callable[..., Any]):
    found = verl_trainer(
        "graphcredit.gigpo",
        {
            "a_b_0_0": ("find hall", "east kitchen take", [1, 0, 1], 1.0, {}),
            "a_b_1_0": ("find hall", "west", [1], 0.0, {}),
        },
        record="verl",
    )
    assert found == [pytest.approx([EAST, 0, TAKE], rel=1e-4), pytest.approx([WEST], rel=1e-4)]


def test_the_record_of_verl():
    made = read_record("verl")

    def compute(trainer: Any, batch: Any, metrics: Any) -> Any:
        return verl.advantages("gigpo", **made["handed"])

    base = SimpleNamespace(tq=SimpleNamespace(kv_batch_get=lambda *_: made["rows"]))
    algorithm = SimpleNamespace(adv_estimator="graphcredit.gigpo")
    trainer = SimpleNamespace(config=SimpleNamespace(algorithm=algorithm), tokenizer=Tokenizer())
    batch = SimpleNamespace(keys=made["keys"], partition_id="train")
    found, _ = verl.with_rows(compute, base)(trainer, batch, {})
    expected = torch.tensor([[EAST, 0, TAKE], [WEST, 0, 0], [0, 0, 0]])
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


def test_verl_takes_states_of_the_rollout_and_options(verl_trainer: Callable[..., Any]):
    outputs = {
        "a_0_0": ("find", "east take", [1, 1], 1.0, {"states": ["hall"]}),
        "a_1_0": ("hall", "west", [1], 0.0, {"states": ["hall"]}),
    }
    found = verl_trainer("graphcredit.gigpo", outputs, merge="segments")
    assert found == [pytest.approx([EAST] * 2, rel=1e-4), pytest.approx([WEST], rel=1e-4)]
    with pytest.raises(OptionError, match="--merge must be one of"):
        verl_trainer("graphcredit.gigpo", outputs, merge="nonsense")
    with pytest.raises(OptionError, match=r"options of StepCredit are merge, state, .*: got merg$"):
        verl_trainer("graphcredit.gigpo", outputs, merg="segments")
    with pytest.raises(InputError, match=r"set trainer.use_v1=True"):
        verl.advantages("reach", token_level_rewards=torch.ones(1, 1), response_mask=None)


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
    pytest.importorskip("skyrl", reason="SkyRL is not installed")
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

    class Watched(RayPPOTrainer):
        def compute_advantages_and_returns(self, data: Any) -> Any:
            data = super().compute_advantages_and_returns(data)
            fields = {k: v for k, v in data.items() if v is not None}
            check_record("skyrl", {"fields": fields, "metadata": data.metadata})
            return data

    trainer: Any = object.__new__(skyrl.with_credit(Watched, GIGPO))
    algorithm = SimpleNamespace(
        advantage_estimator="grpo", gamma=1.0, lambd=1.0, grpo_norm_by_std=True
    )
    trainer.cfg = SimpleNamespace(
        generator=SimpleNamespace(step_wise_trajectories=True),
        trainer=SimpleNamespace(algorithm=algorithm),
    )
    trainer.tokenizer, trainer.all_metrics, trainer.global_step = Tokenizer(), {}, 1
    found = trainer.compute_advantages_and_returns(batch)
    torch.testing.assert_close(found["advantages"], SKYRL, rtol=1e-4, atol=1e-6)
    assert found["returns"].equal(found["advantages"])
    assert "loss/avg_final_rewards" in trainer.all_metrics


SKYRL = torch.tensor([[0, EAST], [TAKE, TAKE], [0, WEST], [0, 0]])


class Batch(dict[str, Any]):
    """A batch as SkyRL has it, of a record."""

    metadata: dict[str, Any]


def test_the_record_of_skyrl():
    made = read_record("skyrl")
    batch = Batch(made["fields"])
    batch.metadata = made["metadata"]

    class Trainer:
        tokenizer, global_step = Tokenizer(), 1

        def compute_advantages_and_returns(self, data: Any) -> Any:
            return data

    found = cast(Any, skyrl.with_credit(Trainer, GIGPO))().compute_advantages_and_returns(batch)
    torch.testing.assert_close(found["advantages"], SKYRL, rtol=1e-4, atol=1e-6)


def said(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def told(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


X = [told("hall"), said("east"), told("kitchen"), said("take")]
Y = [told("hall"), said("west")]


def test_prime_rl():
    """Its own algorithm, with the episodes that `score_group` has."""
    pytest.importorskip("prime_rl", reason="prime-rl is not installed")
    from prime_rl.configs.algorithm import GRPOAlgoConfig
    from prime_rl.orchestrator.algo.grpo import GRPOAlgorithm
    from prime_rl.orchestrator.algo.routing import scalar_advantage

    from tests.api.verifiers_rollouts import episodes, played

    x, y = played()
    algorithm = prime_rl.with_credit(GRPOAlgorithm, GIGPO)(GRPOAlgoConfig(), policy_pool=None)
    check_record("prime_rl", {"episodes": episodes(x, y)})
    asyncio.run(algorithm.finalize_group(episodes(x, y)))
    assert scalar_advantage(x) == pytest.approx((EAST + TAKE) / 2, rel=1e-4)
    assert scalar_advantage(y) == pytest.approx(WEST, rel=1e-4)
    y.ok = False
    asyncio.run(algorithm.finalize_group(episodes(x, y)))
    assert scalar_advantage(x) == 0.0


def test_the_record_of_prime_rl():
    episodes = read_record("prime_rl")["episodes"]
    traces = [episode.traces[0] for episode in episodes]
    for trace, reward in zip(traces, (1.0, 0.0), strict=True):
        trace.has_error, trace.reward = False, reward  # properties of verifiers' traces
    prime_rl.score_group(episodes, GIGPO)
    found = [node.advantages for trace in traces for node in trace.nodes if node.sampled]
    assert found == [pytest.approx([value] * 2, rel=1e-4) for value in (EAST, TAKE, WEST)]


def test_rllm():
    """The hook of its trainer, then its check of advantages that are there already."""
    pytest.importorskip("rllm", reason="rLLM is not installed")
    from rllm.trainer.algorithms import (
        AlgorithmConfig,
        TransformConfig,
        collect_reward_and_advantage_from_trajectory_groups,
        transform_episodes_to_trajectory_groups,
    )
    from rllm.trainer.algorithms.transform import _default_traj_grouping_hook
    from rllm.types import Episode, Step, Trajectory

    def episode(name: str, reward: float, *chats: list[dict[str, str]]) -> Any:
        steps = [Step(id="s", chat_completions=chat, response_ids=[7, 8]) for chat in chats]
        trajectory = Trajectory(uid=name, name="solver", steps=steps, reward=reward)
        return Episode(id=f"t:{name}", trajectories=[trajectory])

    def grouping(*args: Any) -> list[Any]:
        groups = _default_traj_grouping_hook(*args)
        check_record("rllm", {"groups": groups})
        return groups

    x, y = episode("0", 1.0, X[:2], X), episode("1", 0.0, Y)
    hook = rllm.with_credit(grouping, GIGPO)
    groups, _ = transform_episodes_to_trajectory_groups(
        [x, y], TransformConfig(), traj_grouping_hook=hook
    )
    config = AlgorithmConfig(use_precomputed_advantage=True)
    metrics = collect_reward_and_advantage_from_trajectory_groups(groups, config)
    found = [step.advantage for each in (x, y) for step in each.trajectories[0].steps]
    assert found == [pytest.approx([value] * 2, rel=1e-4) for value in (EAST, TAKE, WEST)]
    assert metrics["advantage/solver/max"] == pytest.approx(EAST, rel=1e-4)
    x.trajectories[0].steps[0].chat_completions = X[:1]
    with pytest.raises(InputError, match=r"step 0 of rollout .* must have an answer"):
        rllm.set_advantages(groups)


def test_the_record_of_rllm():
    groups = read_record("rllm")["groups"]
    rllm.set_advantages(groups, GIGPO)
    found = [step.advantage for each in groups[0].trajectories for step in each.steps]
    assert found == pytest.approx([EAST, TAKE, WEST], rel=1e-4)


def test_art():
    """ART's own tokeniser of groups; its sequences are packed with one advantage each."""
    pytest.importorskip("art", reason="openpipe-art is not installed")
    from art.preprocessing.tokenize import tokenize_trajectory_groups
    from art.trajectories import Trajectory, TrajectoryGroup
    from openai.types.chat.chat_completion import Choice
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    tokenizer.chat_template = (
        "{% for m in messages %}{{ m.role }} {{ m.content }}{{ eos_token }}{% endfor %}"
    )

    def trajectory(messages: list[dict[str, str]], reward: float) -> Any:
        def choice(message: dict[str, str]) -> Any:
            tokens = tokenizer.encode(message["content"], add_special_tokens=False)
            parts = [
                {"token": f"token_id:{token}", "logprob": -1.0, "top_logprobs": []}
                for token in tokens
            ]
            return Choice.model_validate(
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": message,
                    "logprobs": {"content": parts, "refusal": None},
                }
            )

        said = [choice(m) if m["role"] == "assistant" else m for m in messages]
        return Trajectory(messages_and_choices=said, reward=reward)

    group = TrajectoryGroup([trajectory(X, 1.0), trajectory(Y, 0.0)])
    theirs = list(tokenize_trajectory_groups(tokenizer, [group], True, True))
    for result in theirs:
        result.prompt_id = 0  # a hash, which differs from process to process
    check_record("art", {"groups": [list(group)], "results": theirs})
    tokenized = art.with_credit(tokenize_trajectory_groups, GIGPO)
    parts = list(tokenized(tokenizer, [group], True, True))
    assert sorted(part.advantage for part in parts) == pytest.approx([WEST, TAKE, EAST], rel=1e-4)
    for result in theirs:
        of_result = [part for part in parts if part.trajectory is result.trajectory]
        masks = [part.assistant_mask for part in of_result]
        assert [sum(column) for column in zip(*masks, strict=True)] == result.assistant_mask
        assert {part.weight for part in of_result} == {result.weight}
    told = Trajectory(messages_and_choices=[*Y], reward=0.0)
    with pytest.raises(InputError, match="must be a choice with log-probabilities: found 0 of 0"):
        list(tokenized(tokenizer, [TrajectoryGroup([told, told])], True, True))


def test_the_record_of_art():
    made = read_record("art")
    for result, trajectory in zip(made["results"], made["groups"][0], strict=True):
        result.trajectory = trajectory
    tokenized = art.with_credit(lambda *_, **options: made["results"], GIGPO)
    parts = list(tokenized(None, made["groups"]))
    assert [part.advantage for part in parts] == pytest.approx([EAST, TAKE, WEST], rel=1e-4)
    for result in made["results"]:
        masks = [part.assistant_mask for part in parts if part.trajectory is result.trajectory]
        assert [sum(column) for column in zip(*masks, strict=True)] == result.assistant_mask
