# pyright: reportMissingImports=false
"""NeMo-RL: its rollout, its batch, its penalties and its loss, around our advantages.

Where a checkout is on PYTHONPATH, `batch_of` is made by NeMo-RL's code and compared with the
record; elsewhere the adapter gets the record.
"""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import typing_extensions

import graphcredit
from graphcredit.integrations import StepCredit, nemo_rl
from graphcredit.store.errors import InputError, OptionError
from tests.api.hall import EAST, TAKE, WEST, Tokenizer, check_record, ids, read_record, stand_ins

pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]

RECORD = "nemo_rl"
# find, find hall | east | kitchen | take, and the same with west; the prompt has an answer of its
# own, which nobody sampled. The last token is padding.
EXPECTED = [[0, 0, 0, EAST, 0, TAKE, 0], [0, 0, 0, WEST, 0, 0, 0]]
NOT_USED = ["mlflow", "swanlab", "matplotlib", "prometheus_client", "soundfile", "scipy"]


@pytest.fixture
def grpo(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """NeMo-RL's module, imported on an older Python and beside a newer transformers."""
    from transformers import AutoProcessor, AutoTokenizer

    assert AutoProcessor
    monkeypatch.setattr(AutoTokenizer, "from_pretrained", AutoTokenizer.from_pretrained)
    monkeypatch.setattr(sys.modules["transformers"], "__version__", "5.11.0")
    monkeypatch.setattr("typing.TypedDict", typing_extensions.TypedDict)
    pytest.importorskip("nemo_rl", reason="NeMo-RL is not installed")
    with stand_ins(*NOT_USED):
        yield import_module("nemo_rl.algorithms.grpo")


class Policy:
    """Says what was said in the hall."""

    def __init__(self, batch_type: Any) -> None:
        self._batch_type = batch_type

    def generate(self, data: Any, greedy: bool = False) -> Any:
        rows: list[list[int]] = []
        for row, length in zip(data["input_ids"], data["input_lengths"], strict=True):
            seen = row[: int(length)].tolist()
            is_x = len(rows) == 0
            at_hall = seen[-1] == ids("hall")[0]
            rows.append([*seen, *ids("take" if not at_hall else "east" if is_x else "west")])
        width = max(map(len, rows))
        output = torch.tensor([row + [0] * (width - len(row)) for row in rows])
        lengths = torch.tensor([len(row) for row in rows])
        return self._batch_type(
            {
                "output_ids": output,
                "generation_lengths": lengths - data["input_lengths"],
                "unpadded_sequence_lengths": lengths,
                "logprobs": torch.full(output.shape, -0.5),
            }
        )


def batch_of(grpo: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, dict[str, Any]]:
    """Return the training data and what `compute_advantage` gets, as `grpo_train` makes them."""
    from nemo_rl.distributed.batched_data_dict import BatchedDataDict
    from nemo_rl.environments.interfaces import EnvironmentReturn
    from nemo_rl.experience import rollouts

    def step(logs: list[Any], infos: list[Any]) -> Any:
        """East is the kitchen, take wins, west ends."""
        last = [log[-1]["content"] for log in logs]
        told = {"east": "kitchen", "take": "", "west": ""}
        return EnvironmentReturn(
            observations=[{"role": "environment", "content": told[word]} for word in last],
            metadata=infos,
            next_stop_strings=[None] * len(last),
            rewards=torch.tensor([float(word == "take") for word in last]),
            terminateds=torch.tensor([word != "east" for word in last]),
            answers=None,
        )

    def prompt() -> list[dict[str, Any]]:
        said = [("user", "find"), ("assistant", "find"), ("user", "hall")]
        return [{"role": r, "content": c, "token_ids": torch.tensor(ids(c))} for r, c in said]

    world: Any = SimpleNamespace(step=SimpleNamespace(remote=lambda *args: FrozenCall(args)))
    monkeypatch.setattr(rollouts.ray, "get", lambda calls: [step(*call.args) for call in calls])
    started = BatchedDataDict(
        {
            "message_log": [prompt(), prompt()],
            "length": torch.tensor([3, 3]),
            "loss_multiplier": torch.ones(2),
            "extra_env_info": [None, None],
            "task_name": ["hall", "hall"],
            "idx": [0, 0],
        }
    )
    policy, tokenizer = Policy(BatchedDataDict), Tokenizer()
    batch, _ = rollouts.run_multi_turn_rollout(policy, started, tokenizer, {"hall": world}, 64)
    prompts = grpo.extract_initial_prompt_messages(batch["message_log"], batch["length"])
    grpo.add_grpo_token_loss_masks_and_generation_logprobs(batch["message_log"])
    flat, _ = grpo.batched_message_log_to_flat_message(prompts, {"token_ids": 0})
    prompt_ids = flat["token_ids"]
    flat, lengths = grpo.batched_message_log_to_flat_message(
        batch["message_log"], {"token_ids": 0}, make_sequence_length_divisible_by=7
    )
    policy_config = {"precision": "float32"}
    data = grpo._build_async_grpo_train_data(flat, lengths, batch, policy_config)
    data["prev_logprobs"] = data["generation_logprobs"]
    handed = {
        "prompt_ids": prompt_ids,
        "rewards": batch["total_reward"],
        "mask": data["token_mask"] * data["sample_mask"].unsqueeze(-1),
        "repeated_batch": batch,
        "logprobs_policy": data["prev_logprobs"],
        "logprobs_reference": None,
    }
    return data, handed


class FrozenCall:
    """A remote call that nobody waits for."""

    def __init__(self, args: Any) -> None:
        self.args = args


def test_its_rollout_its_estimators_and_its_loss(grpo: Any, monkeypatch: pytest.MonkeyPatch):
    from nemo_rl.algorithms.loss import ClippedPGLossConfig, ClippedPGLossFn

    data, handed = batch_of(grpo, monkeypatch)
    check_record(RECORD, handed)
    create = grpo._create_advantage_estimator
    monkeypatch.setattr(grpo, "_create_advantage_estimator", create)  # put back at the end
    nemo_rl.install(grpo)

    def estimator(**options: Any) -> Any:
        config = grpo.GRPOConfig.model_construct(adv_estimator=grpo.AdvEstimatorConfig(**options))
        return grpo._create_advantage_estimator(
            SimpleNamespace(grpo=config, loss_fn=ClippedPGLossConfig())
        )

    assert isinstance(estimator(name="grpo"), grpo.GRPOAdvantageEstimator)
    with pytest.raises(OptionError, match=r"options of StepCredit are merge, state, .*: got merg$"):
        estimator(name="graphcredit.gigpo", merg="segments")
    found = estimator(name="graphcredit.gigpo", merge="segments").compute_advantage(**handed)
    theirs = estimator(name="grpo").compute_advantage(**handed)
    assert (found.shape, found.dtype, found.device) == (theirs.shape, theirs.dtype, theirs.device)
    torch.testing.assert_close(found, torch.tensor(EXPECTED), rtol=1e-4, atol=1e-6)

    data["advantages"] = grpo._clip_grpo_advantages(
        found, SimpleNamespace(advantage_clip_low=-1.0, advantage_clip_high=None)
    )
    loss_fn = ClippedPGLossFn(ClippedPGLossConfig(reference_policy_kl_penalty=0.0))
    logprobs = data["prev_logprobs"][:, 1:].clone().requires_grad_()
    loss, _ = loss_fn(logprobs, data, torch.tensor(2.0), torch.tensor(3.0))
    loss.backward()
    # The ratio is 1, so the gradient of a token is minus its advantage, over three tokens.
    expected = -torch.tensor(EXPECTED)[:, 1:].clamp(min=-1.0) / 3
    torch.testing.assert_close(logprobs.grad, expected, rtol=1e-4, atol=1e-6)


def credited(handed: dict[str, Any], name: str = "graphcredit.gigpo", **options: Any) -> Any:
    made = SimpleNamespace(_create_advantage_estimator=lambda config: "theirs")
    nemo_rl.install(made)
    adv = SimpleNamespace(name=name, model_extra=options)
    config = SimpleNamespace(grpo=SimpleNamespace(adv_estimator=adv))
    return made._create_advantage_estimator(config).compute_advantage(**handed)


def test_the_record():
    handed = read_record(RECORD)
    found = credited(handed)
    assert (found.shape, found.dtype) == (handed["mask"].shape, handed["rewards"].dtype)
    torch.testing.assert_close(found, torch.tensor(EXPECTED), rtol=1e-4, atol=1e-6)


def test_an_answer_in_the_prompt_is_no_step(tmp_path: Path):
    with graphcredit.StepRecorder(
        tmp_path / "s", run_id="r0", iteration=0, worker_id="w"
    ) as recorder:
        credit = nemo_rl.CreditEstimator(StepCredit(estimator="gigpo", recorder=recorder))
        credit.compute_advantage(**read_record(RECORD))
    steps = graphcredit.scan(tmp_path / "s", "steps").sort("trajectory_id", "step_index").collect()
    start = "find\n\nfind\n\nhall"
    assert steps["state"].to_list() == [start, "kitchen", start]
    assert steps["action"].to_list() == ["east", "take", "west"]


def test_a_sample_that_is_not_trained_still_counts():
    """A truncated one, where `overlong_filtering` is on: its reward is compared with the others."""
    handed = read_record(RECORD)
    handed["mask"][1] = 0.0
    expected = torch.tensor([EXPECTED[0], [0.0] * 7])
    torch.testing.assert_close(credited(handed), expected, rtol=1e-4, atol=1e-6)


def test_the_trainers_that_hand_over_no_messages():
    handed = read_record(RECORD) | {"repeated_batch": {"total_reward": 1}}
    with pytest.raises(InputError, match=r"message_log.: found total_reward. grpo_train"):
        credited(handed)
