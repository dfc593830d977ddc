"""Load a model into the engine that suits its device, arithmetic and processes."""

import torch

from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine.distributed import Process, choose_device, init_process_group
from graphcredit.trainer.engine.engine import TrainingEngine
from graphcredit.trainer.engine.sharded_engine import ShardedEngine
from graphcredit.trainer.engine.sharded_loading import load_sharded
from graphcredit.trainer.engine.sharding import choose_layout, shards_of_each
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
    dtype = compute_dtype(config, device)
    is_half = dtype == "bfloat16"
    is_sharded = is_half or config.offload
    init_process_group(device, alone_too=is_sharded, minutes=config.timeout)
    num_processes = Process(device).world_size
    shards_of_each(config, num_processes)
    is_sharded = is_sharded or num_processes > 1
    notices: list[str] = []
    if is_sharded:
        layout = choose_layout(config, device, num_processes, is_half=is_half)
        scorer, notices = load_sharded(
            name,
            config,
            layout,
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
    reduces_each = config.reduce_gradients == "micro-batch"
    kind = ShardedEngine if is_sharded else TrainingEngine
    return kind(name, scorer, config, device, dtype, reduces_each, notices)


def compute_dtype(options: ModelOptions, device: torch.device) -> str:
    """Return the type of the arithmetic: float32 or bfloat16."""
    if options.dtype != "auto":
        return options.dtype
    return "bfloat16" if device.type == "cuda" else "float32"
