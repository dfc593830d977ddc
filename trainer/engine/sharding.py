"""A model whose weights are spread over processes by FSDP2.

The first process loads the model and compares its log-probabilities. The others make it without
weights, and get their shards from the first, a tensor at a time.
"""

from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate, distribute_tensor

from graphcredit.store.errors import InputError
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine.distributed import Process
from graphcredit.trainer.model.layers import decoder_layers
from graphcredit.trainer.model.loading import load_hollow, load_model
from graphcredit.trainer.model.logprobs import Scorer


def load_sharded(
    name: str, config: TrainConfig, device: torch.device, *, is_half: bool, frozen: bool = False
) -> Scorer:
    """Load a model as `load_model` does, with the same weights to the bit, in shards.

    All processes call it. Weights are float32.

    Raises:
        InputError: As for `load_model`, in every process.
    """
    process = Process(device)
    weights: dict[str, Tensor] = {}
    fault = None
    if process.rank == 0:
        try:
            whole = load_model(name, config).state_dict()
            weights = {key: tensor.detach() for key, tensor in whole.items()}
        except InputError as error:
            fault = str(error)
    fault = process.broadcast(fault)
    if fault is not None:
        raise InputError(fault)
    scorer = load_hollow(name, config)
    if frozen:
        scorer.requires_grad_(False)
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    _shard(scorer, mesh, is_half=is_half)
    _receive(scorer, weights, mesh)
    return scorer


def _shard(scorer: Scorer, mesh: DeviceMesh, *, is_half: bool) -> None:
    """Cut each weight by its first dimension; layers are put together while they compute."""
    options: dict[str, Any] = {
        "mesh": mesh,
        # A layer of a single process, which is its own shard, stays whole.
        "reshard_after_forward": mesh.size() > 1,
        # Temperatures are inputs too, and stay float32.
        "mp_policy": MixedPrecisionPolicy(
            param_dtype=torch.bfloat16 if is_half else None,
            reduce_dtype=torch.float32,
            cast_forward_inputs=False,
        ),
    }
    for layer in decoder_layers(scorer):
        fully_shard(layer, **options)
    fully_shard(scorer, **options)


def _receive(scorer: Scorer, weights: dict[str, Tensor], mesh: DeviceMesh) -> None:
    """Give a sharded model its weights, which the first process has; `weights` is emptied."""
    tensors = scorer.state_dict(keep_vars=True)
    values: dict[int, Tensor] = {}
    for name, tensor in tensors.items():
        value = weights.pop(name, None)
        if id(tensor) in values:
            continue
        if value is None:
            value = torch.empty(tensor.shape, dtype=tensor.dtype)
        placements = tensor.placements if isinstance(tensor, DTensor) else [Replicate()]
        shared = distribute_tensor(value, mesh, placements)
        values[id(tensor)] = shared if isinstance(tensor, DTensor) else shared.to_local()
    _assign(scorer, {name: values[id(tensor)] for name, tensor in tensors.items()})


def _assign(module: nn.Module, values: Mapping[str, Tensor]) -> None:
    """Put tensors in the place of a module's own, by name; equal ones make tied weights."""
    before = module.state_dict(keep_vars=True)
    made = {
        id(value): nn.Parameter(value, requires_grad=before[name].requires_grad)
        if isinstance(before[name], nn.Parameter)
        else value
        for name, value in values.items()
    }
    module.load_state_dict({name: made[id(value)] for name, value in values.items()}, assign=True)
