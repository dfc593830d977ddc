"""How a model is spread over processes by FSDP2."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.distributed_c10d import (
    _set_pg_timeout,  # pyright: ignore[reportPrivateUsage]
)
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    MixedPrecisionPolicy,
    OffloadPolicy,
    fully_shard,
    register_fsdp_forward_method,
)
from torch.distributed.tensor import DTensor

from graphcredit.store.errors import InputError
from graphcredit.trainer.model.context import ContextGroup
from graphcredit.trainer.model.layers import decoder_layers
from graphcredit.trainer.model.logprobs import Scorer
from graphcredit.trainer.options import ModelOptions


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """Where the parts of a model are, and in which type it computes. Weights are float32."""

    mesh: DeviceMesh
    """[processes], or [copies, shards of a copy]."""
    is_half: bool
    """Whether the arithmetic is bfloat16."""
    keeps_whole: bool
    """Whether a layer that was put together stays whole after it has computed."""
    minutes: float
    """How long an exchange waits for the other processes."""
    offloads: bool = False
    """Whether shards are kept in the memory of the host."""
    context: ContextGroup | None = None
    """The processes that run each micro-batch together; None where each runs its own."""

    @property
    def device(self) -> torch.device:
        """Where a process keeps its shards."""
        return torch.device("cpu" if self.offloads else self.mesh.device_type)

    def for_check(self) -> "Layout":
        """Return the layout of the same shards on the CPU, in float32."""
        mesh = self.mesh
        if mesh.device_type != "cpu":
            mesh = _mesh("cpu", tuple(mesh.shape), self.minutes)
        return replace(self, mesh=mesh, is_half=False, keeps_whole=False, offloads=False)


def choose_layout(
    options: ModelOptions,
    device: torch.device,
    num_processes: int,
    *,
    is_half: bool,
    minutes: float,
    context: ContextGroup | None = None,
) -> Layout:
    """Return the layout that the options ask for; all processes call it.

    Args:
        options: How many copies there are, and where shards are kept.
        device: Of this process.
        num_processes: All of them.
        is_half: Whether the arithmetic is bfloat16.
        minutes: How long an exchange waits for the other processes.
        context: The processes that run each micro-batch together, if there are any.

    Raises:
        InputError: The copies cannot be made of so many processes.
    """
    num_shards = shards_of_each(options, num_processes)
    shape = (num_processes,) if options.replicate == 1 else (options.replicate, num_shards)
    return Layout(
        mesh=_mesh(device.type, shape, minutes),
        is_half=is_half,
        keeps_whole=num_shards == 1,
        offloads=options.offload,
        context=context,
        minutes=minutes,
    )


def _mesh(device: str, shape: tuple[int, ...], minutes: float) -> DeviceMesh:
    names = ("copy", "shard")[-len(shape) :]
    mesh = init_device_mesh(device, shape, mesh_dim_names=names)
    for group in mesh.get_all_groups():
        # Torch gives a group within all processes its own default: 10 minutes with NCCL.
        _set_pg_timeout(timedelta(minutes=minutes), group)
    return mesh


def shards_of_each(options: ModelOptions, num_processes: int) -> int:
    """Return into how many shards each copy of the model is cut.

    Raises:
        InputError: The number of copies does not divide that of the processes.
    """
    if num_processes % options.replicate:
        raise InputError(
            f"replicate must divide the number of processes, so that each copy of the model has "
            f"as many: got {options.replicate} copies and {num_processes} processes"
        )
    return num_processes // options.replicate


def shard(scorer: Scorer, layout: Layout) -> None:
    """Cut each weight by its first dimension; layers are put together while they compute.

    Args:
        scorer: The model. Weights on the meta device stay there.
        layout: Of the shards, the same in all processes.
    """
    scorer.context = layout.context
    options: dict[str, Any] = {
        "mesh": layout.mesh,
        "reshard_after_forward": not layout.keeps_whole,
        # Temperatures are inputs too, and stay float32.
        "mp_policy": MixedPrecisionPolicy(
            param_dtype=torch.bfloat16 if layout.is_half else None,
            reduce_dtype=torch.float32,
            cast_forward_inputs=False,
        ),
        "offload_policy": OffloadPolicy(),
    }
    if layout.offloads:
        is_gpu = layout.mesh.device_type != "cpu"
        options["offload_policy"] = CPUOffloadPolicy(pin_memory=is_gpu)
    for layer in decoder_layers(scorer):
        fully_shard(layer, **options)
    fully_shard(scorer, **options)
    register_fsdp_forward_method(scorer, "own_logprobs")


def local_part(tensor: Tensor) -> Tensor:
    """Return the shard of a tensor that this process has, or the tensor if it is whole."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def copied(tensor: Tensor, like: Tensor, device: torch.device) -> Tensor:
    """Return a copy of a tensor on a device, laid out as another one of as many shards."""
    copy = torch.empty_like(like, device=device, requires_grad=False)
    with torch.no_grad():
        local_part(copy).copy_(local_part(tensor))
    return copy
