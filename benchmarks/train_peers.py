"""What `benchmarks.train` compares with: a padded step, and an optimizer step of TRL."""

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import (
    AutoModelForCausalLM,
    PreTrainedTokenizerFast,
    PrinterCallback,
    TrainerCallback,
)

from benchmarks.train_setting import Sample, Setting, padded_batches
from benchmarks.train_timing import best, synchronised_clock

_GROUP = 2
"""Completions of a prompt, to TRL; the fewest that it takes."""


def padded_seconds(
    directory: Path, setting: Setting, samples: list[Sample], max_tokens: int, repeats: int
) -> float:
    """Return the seconds of a step usual with Hugging Face models.

    The samples of a batch are padded to the longest one, all logits are computed, and
    log-probabilities are taken from them.
    """
    models: Any = AutoModelForCausalLM
    model = models.from_pretrained(directory, dtype=torch.float32).to(setting.device)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=1e-6, fused=setting.device == "cuda", foreach=False
    )
    batches = list(padded_batches(samples, max_tokens))
    return best(lambda: _step_padded(model, optimizer, batches, setting.dtype), repeats)


def _step_padded(
    model: Any, optimizer: torch.optim.Optimizer, batches: list[list[Sample]], dtype: str
) -> None:
    for samples in batches:
        longest = max(len(p) + len(r) for p, r in samples)
        ids = torch.zeros(len(samples), longest, dtype=torch.long)
        mask, chosen = torch.zeros_like(ids), torch.zeros_like(ids, dtype=torch.bool)
        for row, (prompt, response) in enumerate(samples):
            length = len(prompt) + len(response)
            ids[row, :length] = torch.tensor(prompt + response)
            mask[row, :length] = 1
            chosen[row, len(prompt) : length] = True
        ids, mask, chosen = (tensor.to(model.device) for tensor in (ids, mask, chosen))
        with torch.autocast(model.device.type, torch.bfloat16, enabled=dtype == "bfloat16"):
            logits = model(input_ids=ids, attention_mask=mask).logits[:, :-1]
        logprob = logits.float().log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
        (-logprob[chosen[:, 1:]].sum()).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def grpo_seconds(
    directory: Path,
    setting: Setting,
    samples: list[Sample],
    rows: int,
    repeats: int,
    *,
    keeps_activations: bool = False,
) -> float:
    """Return the seconds of an optimizer step of TRL's `GRPOTrainer` on the same samples.

    They are handed to it as finished rollouts, so it generates nothing. It has no reference, and
    needs no pass for old log-probabilities, because its one update is on-policy.

    Args:
        directory: Of the model, in which TRL also has its output.
        setting: Of the model; the arithmetic is bfloat16 under autocast, or float32.
        samples: As many as an optimizer step has.
        rows: Samples of a micro-batch, which divide them.
        repeats: The best of so many steps counts; one before does not.
        keeps_activations: Whether layers keep theirs; by default TRL computes them again.

    Raises:
        ImportError: TRL is not installed.
    """
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    from datasets import Dataset
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    models: Any = AutoModelForCausalLM
    clock = _StepClock()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer: Any = GRPOTrainer(
            model=models.from_pretrained(directory, dtype=torch.float32),
            reward_funcs=_reward,
            args=GRPOConfig(
                output_dir=str(directory / "trl"),
                per_device_train_batch_size=rows,
                gradient_accumulation_steps=len(samples) // rows,
                num_generations=_GROUP,
                max_completion_length=setting.responses[1],
                max_steps=repeats + 1,
                learning_rate=1e-6,
                beta=0.0,
                bf16=setting.dtype == "bfloat16",
                use_cpu=setting.device == "cpu",
                gradient_checkpointing=not keeps_activations,
                save_strategy="no",
                report_to="none",
                disable_tqdm=True,
                logging_strategy="no",
            ),
            train_dataset=Dataset.from_dict({"prompt": ["-"] * len(samples)}),
            processing_class=_tokenizer(),
            rollout_func=_rollouts(samples),
            callbacks=[clock],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return min(clock.seconds[1:])


class _StepClock(TrainerCallback):
    """Takes the time of each optimizer step, rollouts being there."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._started = 0.0

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self._started = synchronised_clock()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.seconds.append(synchronised_clock() - self._started)


def _reward(completions: list[str], **_: Any) -> list[float | None]:
    """Reward every second completion, so that advantages are not 0."""
    return [float(number % _GROUP) for number in range(len(completions))]


def _rollouts(samples: list[Sample]) -> Callable[..., dict[str, Any]]:
    def roll_out(prompts: list[str], _: Any) -> dict[str, Any]:
        taken = [samples[number % len(samples)] for number in range(len(prompts))]
        return {
            "prompt_ids": [prompt for prompt, _ in taken],
            "completion_ids": [response for _, response in taken],
            "logprobs": None,
        }

    return roll_out


def _tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer that TRL can decode any id with, into nothing."""
    words = Tokenizer(WordLevel({"<pad>": 0, "<eos>": 1}, unk_token="<pad>"))
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>")
