"""An optimizer step of TRL's GRPOTrainer, for `benchmarks.train` to compare with.

TRL trains in its own loop, with its default options: activations computed again, and a head that
makes no whole rows of logits. Only generation is left out: the batches are there.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from datasets import Dataset  # pyright: ignore[reportMissingTypeStubs]
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import (
    AutoModelForCausalLM,
    PreTrainedTokenizerFast,
    PrinterCallback,
    TrainerCallback,
)
from trl import (
    GRPOConfig,  # pyright: ignore[reportPrivateImportUsage]
    GRPOTrainer,  # pyright: ignore[reportPrivateImportUsage]
)

from benchmarks.padded_step import Sample, batches

_Trainer: Any = GRPOTrainer


class _Given(_Trainer):
    """Trains on batches that it is given, again and again."""

    given: Sequence[dict[str, torch.Tensor]]

    def _prepare_inputs(self, generation_batch: Any) -> dict[str, torch.Tensor]:
        del generation_batch
        return self.given[self._step % len(self.given)]


class _Clock(TrainerCallback):
    """Times optimizer steps."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._started = 0.0

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self._started = _now()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.seconds.append(_now() - self._started)


def trl_seconds(
    directory: Path,
    samples: Sequence[Sample],
    *,
    max_tokens: int,
    device: str,
    dtype: str,
    repeats: int,
) -> float:
    """Return the least seconds of some steps, after one that does not count.

    Args:
        directory: Of the model.
        samples: Of a step.
        max_tokens: Most tokens of a batch, with padding.
        device: cpu or cuda.
        dtype: Type of the arithmetic; weights are float32.
        repeats: Steps that count.
    """
    models: Any = AutoModelForCausalLM
    num_items = torch.tensor(sum(len(response) for _, response in samples), device=device)
    given = [
        {**padded_batch(batch, device), "num_items_in_batch": num_items}
        for batch in batches(samples, max_tokens)
    ]
    clock = _Clock()
    with TemporaryDirectory() as out:
        trainer = _Given(
            models.from_pretrained(directory, dtype=torch.float32),
            reward_funcs=_no_reward,
            args=GRPOConfig(
                output_dir=out,
                per_device_train_batch_size=2,
                num_generations=2,
                gradient_accumulation_steps=len(given),
                max_steps=1 + repeats,
                bf16=dtype == "bfloat16",
                use_cpu=device == "cpu",
                report_to=[],
                save_strategy="no",
                disable_tqdm=True,
                logging_strategy="no",
            ),
            train_dataset=Dataset.from_list([{"prompt": "a"}] * len(given)),
            processing_class=_tokenizer(),
            callbacks=[clock],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.given = given
        trainer.train()
    return min(clock.seconds[1:])


def padded_batch(samples: Sequence[Sample], device: str) -> dict[str, torch.Tensor]:
    """Return prompts that end together and responses that begin together, as TRL pads them."""
    prompts, responses = zip(*samples, strict=True)
    left = [ids[::-1] for ids in prompts]
    return {
        "prompt_ids": _rows(left).flip(1).to(device),
        "prompt_mask": _rows([[1] * len(ids) for ids in left]).flip(1).to(device),
        "completion_ids": _rows(responses).to(device),
        "completion_mask": _rows([[1] * len(ids) for ids in responses]).to(device),
        "advantages": torch.tensor([1.0 - 2.0 * (n % 2) for n in range(len(samples))]).to(device),
    }


def _rows(lists: Sequence[list[int]]) -> torch.Tensor:
    tensors = [torch.tensor(each) for each in lists]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True)


def _no_reward(completions: list[str], **_: Any) -> list[float]:
    return [0.0] * len(completions)


def _tokenizer() -> PreTrainedTokenizerFast:
    words = Tokenizer(WordLevel({"a": 0, "b": 1}, unk_token="a"))
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="a", eos_token="b")


def _now() -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()
