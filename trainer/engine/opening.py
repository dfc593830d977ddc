"""Load a model into the engine that suits its device, arithmetic and processes."""

import torch

from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine.distributed import choose_device, init_process_group, num_processes
from graphcredit.trainer.engine.engine import TrainingEngine
from graphcredit.trainer.engine.sharding import load_sharded
from graphcredit.trainer.model.layers import decoder_layers
from graphcredit.trainer.model.loading import load_model
from graphcredit.trainer.options import ModelOptions


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


def compute_dtype(options: ModelOptions, device: torch.device) -> str:
    """Return the type of the arithmetic: float32 or bfloat16."""
    if options.dtype != "auto":
        return options.dtype
    return "bfloat16" if device.type == "cuda" else "float32"
