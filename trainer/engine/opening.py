"""Load a model into the engine that suits its device, arithmetic and processes."""

import torch

from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine.distributed import Process, choose_device, init_process_group
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
    process = join(config)
    device = process.device
    dtype = compute_dtype(config, device)
    is_sharded = computes_in_shards(config, device) or process.world_size > 1
    if is_sharded:
        scorer = load_sharded(
            name,
            config,
            device,
            is_half=dtype == "bfloat16",
            adapter_seed=config.adapter_seed,
            frozen=frozen,
            shares_prefixes=config.share_prefixes,
        )
    else:
        scorer = load_model(
            name,
            config,
            adapter_seed=config.adapter_seed,
            shares_prefixes=config.share_prefixes,
        ).to(device)
        if frozen:
            scorer.requires_grad_(False)
    if config.compile:
        for layer in decoder_layers(scorer):
            layer.compile(dynamic=True)
    return TrainingEngine(name, scorer, config, device)


def join(config: TrainConfig) -> Process:
    """Return this process, which has joined the others.

    Raises:
        InputError: The device is not available.
    """
    device = choose_device(config.device)
    init_process_group(device, alone_too=computes_in_shards(config, device))
    return Process(device)


def computes_in_shards(options: ModelOptions, device: torch.device) -> bool:
    """Return whether one process alone has its model in a shard, as several always have."""
    return compute_dtype(options, device) == "bfloat16"


def compute_dtype(options: ModelOptions, device: torch.device) -> str:
    """Return the type of the arithmetic: float32 or bfloat16."""
    if options.dtype != "auto":
        return options.dtype
    return "bfloat16" if device.type == "cuda" else "float32"
