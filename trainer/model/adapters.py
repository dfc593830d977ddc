"""LoRA adapters on a transformers model, whether its weights are there or not."""

import random
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch

from graphcredit.store.errors import InputError
from graphcredit.trainer.options import ModelOptions


def with_adapters(model: Any, options: ModelOptions, seed: str) -> Any:
    """Return a peft model around a model, with new adapters.

    Raises:
        InputError: The targets do not exist, or are the head or experts.
    """
    # It takes longer than to load a small model, and most trainings have no adapters.
    from peft import LoraConfig, get_peft_model
    from peft.tuners.lora import ParamWrapper
    from peft.tuners.tuners_utils import BaseTunerLayer

    targets = [target.strip() for target in options.lora_targets.split(",")]
    lora = LoraConfig(
        task_type="CAUSAL_LM",
        r=options.lora_rank,
        lora_alpha=options.lora_alpha,  # pyright: ignore[reportArgumentType]
        target_modules=targets[0] if targets == ["all-linear"] else targets,
    )
    try:
        with torch.random.fork_rng(), quiet_peft():
            torch.manual_seed(random.Random(seed).getrandbits(63))
            adapted = get_peft_model(model, lora).eval()
    except ValueError as error:
        raise InputError(f"lora_targets {options.lora_targets!r}: {error}") from error
    if any(isinstance(m, ParamWrapper) for m in adapted.modules()):
        raise InputError(
            f"lora_targets must not name the experts or their router, but {options.lora_targets!r} "
            "does: they are no linear layers, and their adapters cannot be merged one by one. Name "
            "the modules of attention, such as q_proj,k_proj,v_proj,o_proj, or take lora_rank 0"
        )
    if any(isinstance(m, BaseTunerLayer) for m in model.get_output_embeddings().modules()):
        raise InputError(
            f"lora_targets must not name the head, but {options.lora_targets!r} does: samplers "
            "that load adapters leave it out. Name other modules, or take all-linear"
        )
    return adapted


@contextmanager
def quiet_peft() -> Generator[None]:
    """Silence warnings that tell a user nothing.

    One of transformers 5.23 is about a name that only peft 0.21 uses; one of peft is about the
    experts that it was asked to adapt, which are refused anyway.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"The following \w+_pattern keys", RuntimeWarning)
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
        yield
