"""The memory that a training takes, and whether its card has so much: before a model is loaded."""

import torch

from graphcredit.store.errors import InputError
from graphcredit.trainer.batching.plan import TrainingPlan
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine.distributed import device_memory, num_processes
from graphcredit.trainer.engine.opening import compute_dtype
from graphcredit.trainer.model.loading import load_shapes
from graphcredit.trainer.model.logprobs import Scorer
from graphcredit.trainer.model.memory import MemoryEstimate, estimate_memory
from graphcredit.trainer.output.sharded_tensors import FILE_BYTES

_GIB = 1 << 30


def training_memory(
    config: TrainConfig, plan: TrainingPlan, shapes: Scorer, num_processes: int, dtype: str
) -> MemoryEstimate:
    """Return the memory that a training takes in each process.

    Args:
        config: Of the training.
        plan: Of the training.
        shapes: The model on the meta device.
        num_processes: Processes that share the training.
        dtype: Type of the arithmetic: float32 or bfloat16.
    """
    return estimate_memory(
        shapes,
        plan.sizes(),
        num_processes=num_processes,
        dtype=dtype,
        file_bytes=FILE_BYTES,
        reference=load_shapes(config.reference, config.changed(lora_rank=0))
        if config.reference
        else None,
        has_images=plan.index.has_images,
    )


def refuse_small_card(config: TrainConfig, plan: TrainingPlan, device: torch.device) -> None:
    """Raise InputError if a training takes more than all memory of its card.

    Compiled layers keep less than the estimate says, so they are tried.
    """
    if device.type != "cuda" or config.compile:
        return
    dtype = compute_dtype(config, device)
    shapes = load_shapes(config.model, config)
    needs = training_memory(config, plan, shapes, num_processes(), dtype)
    has = device_memory(device)
    if needs.on_device > has:
        passing = (needs.activations or 0) + (needs.logits or 0)
        raise InputError(
            f"a training must fit in the memory of its card: it takes {needs.on_device / _GIB:.1f} "
            f"GiB, of which {passing / _GIB:.1f} are for a pass over at most {config.max_tokens:,} "
            f"tokens, and the card has {has / _GIB:.1f}. Take fewer --max-tokens, "
            "--gradient-checkpointing, --lora-rank 16, or more cards by torchrun; --dry-run shows "
            "every part"
        )
