"""The models of random weights and the samples that `benchmarks.train` times steps of."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from transformers import AutoModelForCausalLM, Qwen2Config

from benchmarks.padded_step import Sample
from graphcredit.trainer.config import TrainConfig
from tests.trainer.logs import episode, token_store, turn


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
LARGE = Setting(
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
SMALLER = {
    **LARGE.shape,
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
}
"""The shape of Qwen2.5-0.5B."""


def sized(setting: Setting, max_tokens: int, num_samples: int) -> Setting:
    """Return a setting of other micro-batches; prompts are at most half as long as they are."""
    low, high = setting.prompts
    prompts = min(low, max_tokens // 8), min(high, max_tokens // 2)
    return replace(setting, prompts=prompts, max_tokens=max_tokens, num_samples=num_samples)


def write_inputs(folder: Path, setting: Setting) -> list[Sample]:
    """Write a model of random weights, and a store of the samples that are returned."""
    random = np.random.default_rng(0)

    def ids(bounds: tuple[int, int]) -> list[int]:
        return random.integers(setting.shape["vocab_size"], size=random.integers(*bounds)).tolist()

    samples = [(ids(setting.prompts), ids(setting.responses)) for _ in range(setting.num_samples)]
    turns = [turn(*sample, advantage=1.0 - 2.0 * (n % 2)) for n, sample in enumerate(samples)]
    token_store(folder / "store", [episode(f"e{n}", each) for n, each in enumerate(turns)])
    torch.manual_seed(0)
    config = Qwen2Config(**setting.shape, max_position_embeddings=8192)
    with torch.device(setting.device):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.save_pretrained(folder / "model")
    return samples


def train_config(folder: Path, setting: Setting, **options: Any) -> TrainConfig:
    """Return the configuration of a training on what `write_inputs` has written."""
    return TrainConfig(
        store=(folder / "store",),
        out=folder / "out",
        model=str(folder / "model"),
        device=setting.device,
        dtype=setting.dtype,
        batch_size=setting.num_samples,
        max_tokens=setting.max_tokens,
        kl_coefficient=0.0,
        **options,
    )
