"""Load a model into the engine that suits its device, arithmetic and processes."""

import os

import torch

from graphcredit.store.errors import InputError
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine.distributed import choose_device, init_process_group, num_processes
from graphcredit.trainer.engine.engine import TrainingEngine
from graphcredit.trainer.engine.sharding import load_sharded
from graphcredit.trainer.model.layers import decoder_layers
from graphcredit.trainer.model.loading import load_model
from graphcredit.trainer.options import ModelOptions

_LEAST_CAPABILITY = (8, 0)
"""Of a GPU for bfloat16."""


def open_engine(name: str, config: TrainConfig, *, frozen: bool = False) -> TrainingEngine:
    """Load a model, or this process' shard of it, onto the device.

    Args:
        name: A directory, or a name in the local Hugging Face cache.
        config: The options of model and optimizer are used; seed and iteration seed the adapters.
        frozen: Whether it only computes log-probabilities: no adapters, optimizer or gradients.

    Raises:
        InputError: The model cannot be trained (see `load_model`), or the device is not available.
    """
    if frozen:
        config = config.changed(lora_rank=0, gradient_checkpointing=False)
    device = choose_device(config.device)
    is_half = compute_dtype(config, device) == "bfloat16"
    if is_half and device.type == "cuda":
        _check_capability(device)
        _expand_segments()
    # In half precision one process alone has its model in a shard, as several always have.
    init_process_group(device, alone_too=is_half)
    if is_half or num_processes() > 1:
        scorer = load_sharded(name, config, device, is_half=is_half, frozen=frozen)
    else:
        scorer = load_model(name, config).to(device)
        if frozen:
            scorer.requires_grad_(False)
    if config.compile:
        for layer in decoder_layers(scorer):
            layer.compile(dynamic=True)
    return TrainingEngine(name, scorer, config, device)


def _check_capability(device: torch.device) -> None:
    """Raise InputError if a GPU lacks the arithmetic and the kernel of attention in bfloat16."""
    capability = torch.cuda.get_device_capability(device)
    if capability < _LEAST_CAPABILITY:
        raise InputError(
            "training in bfloat16 needs a GPU of compute capability 8.0, such as an A100, or a "
            f"newer one: {torch.cuda.get_device_name(device)} has "
            f"{'.'.join(map(str, capability))}. Take --dtype float32"
        )


def _expand_segments() -> None:
    """Let the allocator grow its segments, unless the user has set it up otherwise.

    Micro-batches differ in size, and blocks of many sizes leave holes that no later one fits.
    """
    if not any(name in os.environ for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")):
        set_up = torch._C._accelerator_setAllocatorSettings  # pyright: ignore[reportPrivateUsage]
        set_up("expandable_segments:True")


def compute_dtype(options: ModelOptions, device: torch.device) -> str:
    """Return the type of the arithmetic: float32 or bfloat16."""
    if options.dtype != "auto":
        return options.dtype
    return "bfloat16" if device.type == "cuda" else "float32"
