"""TRL itself trains a tiny random model on the advantages of `compute`.

The rollouts are played by hand, so that the advantages are known: x walks from the hall (the
prompt) east, sees the kitchen and takes the mug, which is worth 1; y walks west, which is worth 0.
By GraphGPO x and y differ by one in their episode and at the hall, so each part is ±1/√2, and the
kitchen, seen once, has the episode's part only. Each word is a token or more; what a place looks
like is masked.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

trl = pytest.importorskip(
    "trl", reason="TRL is not installed: pip install 'graphcredit[integrations]'"
)
torch = pytest.importorskip("torch")

from datasets import Dataset  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402

import graphcredit  # noqa: E402
from graphcredit.integrations import StepCredit, trl_async_grpo  # noqa: E402
from graphcredit.integrations.trl_grpo import StepCreditGRPOTrainer  # noqa: E402

pytestmark = [
    pytest.mark.integrations,
    pytest.mark.filterwarnings("ignore"),  # those of TRL and what it imports
]

MODEL = Path(__file__).parent / "tiny_policy"
HALF = 2**-0.5


class Played:
    """Rollouts whose words are known; a `rollout_func` of TRL."""

    def __init__(self) -> None:
        self.tokenizer: Any = AutoTokenizer.from_pretrained(MODEL)

    def __call__(self, prompts: list[Any], trainer: Any) -> dict[str, list[Any]]:
        plays = [self.play(number % 2 == 0) for number in range(len(prompts))]
        return {
            "prompt_ids": [self.ids("hall")] * len(prompts),
            "completion_ids": [ids for ids, _ in plays],
            "env_mask": [mask for _, mask in plays],
            "logprobs": [[-1.0] * len(ids) for ids, _ in plays],
        }

    def ids(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False)

    def play(self, is_x: bool) -> tuple[list[int], list[int]]:
        words = [("east", 1), ("kitchen", 0), ("take", 1)] if is_x else [("west", 1)]
        parts = [(self.ids(word), is_sampled) for word, is_sampled in words]
        mask = [is_sampled for ids, is_sampled in parts for _ in ids]
        return [token for ids, _ in parts for token in ids], mask

    def spread(self, *values: float) -> list[float]:
        """Return the advantages of the tokens of x or y."""
        words = ["east", "kitchen", "take"] if len(values) == 3 else ["west"]
        pairs = zip(words, values, strict=True)
        return [value for word, value in pairs for _ in self.ids(word)]


def took_the_mug(completions: list[str], **_: Any) -> list[float]:
    return [float("take" in completion) for completion in completions]


class Watched(StepCreditGRPOTrainer):
    """Keeps what the loss was computed of."""

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
        loss = super()._compute_loss(model, inputs)
        seen = {
            name: value.detach().clone()
            for name, value in inputs.items()
            if hasattr(value, "detach")
        }
        self.seen = [*getattr(self, "seen", []), (seen, loss.detach())]
        return loss


def trainer(tmp_path: Path, played: Played, credit: StepCredit | None, **options: Any) -> Any:
    config = trl.GRPOConfig(
        output_dir=str(tmp_path / "out"),
        per_device_train_batch_size=2,
        num_generations=2,
        max_steps=2,
        learning_rate=1e-2,
        loss_type="grpo",
        beta=0.0,
        report_to=[],
        use_cpu=True,
        save_strategy="no",
        disable_tqdm=True,
        **options,
    )
    model = AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32)
    return Watched(
        model,
        reward_funcs=[took_the_mug],
        args=config,
        train_dataset=Dataset.from_list([{"prompt": "hall"}] * 4),
        processing_class=played.tokenizer,
        rollout_func=played,
        step_credit=credit,
    )


def test_the_loss_is_computed_of_the_advantages_of_the_turns(tmp_path: Path):
    played = Played()
    training = trainer(tmp_path, played, StepCredit(estimator="graphgpo"))
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


def test_a_group_of_equal_completions_moves_nothing(tmp_path: Path):
    played = Played()
    played.play = lambda is_x: Played.play(played, True)  # pyright: ignore[reportAttributeAccessIssue]
    training = trainer(tmp_path, played, StepCredit(estimator="graphgpo"))
    before = {name: value.clone() for name, value in training.model.named_parameters()}
    training.train()
    assert all((seen["advantages"] == 0).all() for seen, _ in training.seen)
    assert all((value == before[name]).all() for name, value in training.model.named_parameters())


def test_what_was_trained_on_is_in_the_store(tmp_path: Path):
    with graphcredit.StepRecorder(
        tmp_path / "s", run_id="grpo", iteration=0, worker_id="w"
    ) as recorder:
        trainer(tmp_path, Played(), StepCredit(recorder=recorder)).train()
    rows = graphcredit.scan(tmp_path / "s", "steps").collect()
    assert sorted(zip(rows["state"], rows["action"], strict=True)) == sorted(
        [("hall", "east"), ("kitchen", "take"), ("hall", "west")] * 2
    )
    assert sum(rows["reward"]) == 2.0
    assert rows["task_id"].n_unique() == 2


def test_the_samples_of_the_asynchronous_worker():
    from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

    def sample(state: str, action: str) -> Any:
        ids = np.array([1, 2])
        return RolloutSample(
            prompt=[{"role": "user", "content": state}],
            completion=[{"role": "assistant", "content": action}],
            input_ids=ids,
            completion_mask=ids,
            old_log_probs=ids,
            advantage=0.0,
            model_version=0,
            group_id=4,
            metrics={},
        )

    x, y = [sample("hall", "east"), sample("kitchen", "take")], [sample("hall", "west")]
    trl_async_grpo.set_advantages([x, y], [1.0, 0.0], StepCredit(estimator="graphgpo"))
    found = [each.advantage for each in (*x, *y)]
    assert found == pytest.approx([2 * HALF, HALF, -2 * HALF], rel=1e-4)
