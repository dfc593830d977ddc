"""Load a model so that each process holds its shard of the weights, and at no time all of them.

The model is made without weights, cut into shards, and each process reads its own rows from the
safetensors, those of a mixture's experts from the tensors that make them up. A model whose weights
are put together in another way is loaded whole by the first process, which hands out the shards: a
notice says so.
"""

import copy
import gc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, Replicate, distribute_tensor

from graphcredit.store.errors import InputError, library_errors
from graphcredit.trainer.engine.distributed import Process
from graphcredit.trainer.engine.sharding import Layout, copied, local_part, shard
from graphcredit.trainer.engine.weight_files import WeightFiles
from graphcredit.trainer.engine.weight_pieces import find_pieces, stored_weights
from graphcredit.trainer.model.loading import load_hollow, load_weights
from graphcredit.trainer.model.logprobs import Scorer
from graphcredit.trainer.model.packing_check import check_scorer
from graphcredit.trainer.model.source import find_model, require_safetensors, source_rule
from graphcredit.trainer.options import ModelOptions

_CPU = torch.device("cpu")


def load_sharded(
    name: str,
    options: ModelOptions,
    layout: Layout,
    *,
    adapter_seed: str,
    frozen: bool = False,
    shares_prefixes: bool = False,
) -> tuple[Scorer, list[str]]:
    """Load a model as `load_model` does, with the same weights to the bit, in shards.

    All processes call it. The comparison with the model's own forward pass is made in shards too,
    on the CPU in float32, whatever the training computes in.

    Args:
        name: As for `load_model`, as the next one.
        options: How it is computed, and whether LoRA adapters are added.
        layout: Of the shards.
        adapter_seed: Seed of the adapters' first weights.
        frozen: Whether nothing of it is trained.
        shares_prefixes: Whether samples will share prefixes.

    Returns:
        The model with its shards on the device, and a notice if a process held all of it.

    Raises:
        InputError: As for `load_model`, in every process.
    """
    directory = find_model(name)
    require_safetensors(directory)
    scorer = load_hollow(name, options, adapter_seed=adapter_seed)
    if frozen:
        scorer.requires_grad_(False)
    # FSDP settles the type of the arithmetic once, and that of the check is always float32.
    checked = copy.deepcopy(scorer)
    layout_of_check = layout.for_check()
    shard(checked, layout_of_check)
    notices = _fill(checked, directory, layout_of_check)
    check_scorer(str(directory), checked, shares_prefixes=shares_prefixes)
    found = checked.state_dict()
    # Its modules refer to each other, and would keep the shards.
    del checked
    gc.collect()
    shard(scorer, layout)
    _take_over(scorer, found, layout.device)
    return scorer, notices


def _fill(scorer: Scorer, directory: Path, layout: Layout) -> list[str]:
    """Give a sharded model its weights from disk; return a notice if a process held all of them."""
    model = scorer.causal_lm
    weights = stored_weights(model)
    values = {
        id(tensor): torch.empty_like(tensor, device=_CPU, requires_grad=False)
        for tensor in weights.values()
    }
    with library_errors(source_rule(directory)):
        files = WeightFiles(directory)
        pieces = find_pieces(model, files.shapes)
        for key, parts in (pieces or {}).items():
            files.read(parts, values[key])
    if pieces is None:
        names = {id(tensor): name for name, tensor in weights.items()}
        _receive(directory, {names[key]: value for key, value in values.items()}, layout)
    own = model.state_dict(keep_vars=True)
    _assign(model, {n: values[id(tensor)] for n, tensor in own.items() if ".lora_" not in n})
    return [_whole_notice(directory, model)] if pieces is None else []


def whole_notices(directory: Path, model: Any) -> list[str]:
    """Return the notice about a model that the first process would load whole, if it would.

    Args:
        directory: Of the model, whose files say which tensors they hold.
        model: The transformers model; its values do not count.
    """
    with library_errors(source_rule(directory)):
        pieces = find_pieces(model, WeightFiles(directory).shapes)
    return [_whole_notice(directory, model)] if pieces is None else []


def _whole_notice(directory: Path, model: Any) -> str:
    return (
        f"{directory} is loaded whole by the first process, in float32, because the weights of "
        f"{type(model).__name__} are named or put together otherwise on disk, so that no process "
        "can read its shard alone: the host memory of that process must hold all of them"
    )


def _receive(directory: Path, into: Mapping[str, Tensor], layout: Layout) -> None:
    """Fill tensors from a model that the first process loads, one after the other."""
    process = Process(_CPU)
    whole: Mapping[str, Tensor] = {}
    fault = None
    if process.rank == 0:
        try:
            whole = load_weights(directory).state_dict()
        except InputError as error:
            fault = str(error)
    fault = process.broadcast(fault)
    if fault is not None:
        raise InputError(fault)
    for name, tensor in into.items():
        is_sharded = isinstance(tensor, DTensor)
        placements = tensor.placements if is_sharded else [Replicate()] * layout.mesh.ndim
        value = whole[name] if process.rank == 0 else torch.empty(tensor.shape, dtype=tensor.dtype)
        own = distribute_tensor(value, layout.mesh, placements).to_local()
        local_part(tensor).copy_(own)


def _take_over(scorer: Scorer, found: dict[str, Tensor], device: torch.device) -> None:
    """Give a sharded model the shards of another one, on a device; `found` is emptied meanwhile."""
    own = scorer.state_dict(keep_vars=True)
    values: dict[int, Tensor] = {}
    for name, tensor in own.items():
        value = found.pop(name)
        if id(tensor) not in values:
            is_sharded = isinstance(tensor, DTensor)
            values[id(tensor)] = copied(value, tensor, device if is_sharded else tensor.device)
    _assign(scorer, {name: values[id(tensor)] for name, tensor in own.items()})


def _assign(module: nn.Module, values: Mapping[str, Tensor]) -> None:
    """Put tensors in the place of a module's own, by name; equal ones make tied weights."""
    own = module.state_dict(keep_vars=True)
    made = {
        id(value): nn.Parameter(value, requires_grad=own[name].requires_grad)
        if isinstance(own[name], nn.Parameter)
        else value
        for name, value in values.items()
    }
    module.load_state_dict(
        {name: made[id(value)] for name, value in values.items()}, strict=False, assign=True
    )
