"""Rollouts played by hand, and a trainer of TRL that keeps what its loss was computed of."""

from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl.trainer.grpo_config import GRPOConfig

from graphcredit.integrations import StepCredit
from graphcredit.integrations.trl_grpo import StepCreditGRPOTrainer

MODEL = Path(__file__).parent / "tiny_policy"


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
    config = GRPOConfig(
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
