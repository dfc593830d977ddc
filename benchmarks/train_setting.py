"""The model and the samples of `benchmarks.train`: random numbers, in a store."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from transformers import AutoModelForCausalLM, Qwen2Config

from tests.trainer.logs import episode, token_store, turn

Sample: TypeAlias = tuple[list[int], list[int]]
"""Prompt and response."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """A model's shape and the samples it is trained on."""

    shape: dict[str, Any]
    prompts: tuple[int, int]
    responses: tuple[int, int]
    num_samples: int
    max_tokens: int
    dtype: Literal["float32", "bfloat16"]
    device: Literal["cpu", "cuda"]


TINY = Setting(
    shape={
        "vocab_size": 8192,
        "hidden_size": 256,
        "intermediate_size": 512,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
    },
    prompts=(40, 900),
    responses=(8, 96),
    num_samples=24,
    max_tokens=4096,
    dtype="float32",
    device="cpu",
)
QWEN = Setting(
    shape={
        "vocab_size": 151_936,
        "hidden_size": 1536,
        "intermediate_size": 8960,
        "num_hidden_layers": 28,
        "num_attention_heads": 12,
        "num_key_value_heads": 2,
        "tie_word_embeddings": True,
    },
    prompts=(2000, 5000),
    responses=(30, 512),
    num_samples=64,
    max_tokens=32_768,
    dtype="bfloat16",
    device="cuda",
)
"""The shape of Qwen2.5-1.5B."""


def random_samples(setting: Setting) -> list[Sample]:
    """Return samples of random lengths and ids."""
    random = np.random.default_rng(0)

    def ids(bounds: tuple[int, int]) -> list[int]:
        return random.integers(setting.shape["vocab_size"], size=random.integers(*bounds)).tolist()

    return [(ids(setting.prompts), ids(setting.responses)) for _ in range(setting.num_samples)]


def write_model(directory: Path, setting: Setting) -> None:
    """Write a model of random weights, which are made on the device."""
    torch.manual_seed(0)
    config = Qwen2Config(**setting.shape, max_position_embeddings=8192)
    with torch.device(setting.device):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.save_pretrained(directory)


def write_store(directory: Path, samples: list[Sample]) -> None:
    """Write samples as steps whose advantages are 1 and -1 by turns."""
    signs = (1.0 - 2.0 * (number % 2) for number in range(len(samples)))
    turns = [turn(*sample, advantage=sign) for sample, sign in zip(samples, signs, strict=True)]
    token_store(directory, [episode(f"e{n}", each) for n, each in enumerate(turns)])


def padded_batches(samples: list[Sample], max_tokens: int) -> Iterator[list[Sample]]:
    """Yield the samples of each batch whose rows, padded to the longest, have so many tokens."""
    batch: list[Sample] = []
    longest = 0
    for prompt, response in samples:
        longest = max(longest, len(prompt) + len(response))
        if batch and longest * (len(batch) + 1) > max_tokens:
            yield batch
            batch, longest = [], len(prompt) + len(response)
        batch.append((prompt, response))
    yield batch
