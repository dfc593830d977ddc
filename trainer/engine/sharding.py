"""How a model is spread over processes by FSDP2."""

from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import (
    MixedPrecisionPolicy,
    fully_shard,
    register_fsdp_forward_method,
)

from graphcredit.trainer.model.layers import decoder_layers
from graphcredit.trainer.model.logprobs import Scorer


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """Where the parts of a model are, and in which type it computes. Weights are float32."""

    mesh: DeviceMesh
    """Of all processes."""
    is_half: bool
    """Whether the arithmetic is bfloat16."""
    keeps_whole: bool
    """Whether a layer that was put together stays whole after it has computed."""

    @property
    def device(self) -> torch.device:
        """Where a process keeps its shards."""
        return torch.device(self.mesh.device_type)

    def for_check(self) -> "Layout":
        """Return the layout of the same shards on the CPU, in float32."""
        mesh = self.mesh
        if mesh.device_type != "cpu":
            mesh = init_device_mesh("cpu", tuple(mesh.shape))
        return Layout(mesh=mesh, is_half=False, keeps_whole=False)


def shard(scorer: Scorer, layout: Layout) -> None:
    """Cut each weight by its first dimension; layers are put together while they compute.

    Args:
        scorer: The model. Weights on the meta device stay there.
        layout: Of the shards, the same in all processes.
    """
    options: dict[str, Any] = {
        "mesh": layout.mesh,
        "reshard_after_forward": not layout.keeps_whole,
        # Temperatures are inputs too, and stay float32.
        "mp_policy": MixedPrecisionPolicy(
            param_dtype=torch.bfloat16 if layout.is_half else None,
            reduce_dtype=torch.float32,
            cast_forward_inputs=False,
        ),
    }
    for layer in decoder_layers(scorer):
        fully_shard(layer, **options)
    fully_shard(scorer, **options)
    register_fsdp_forward_method(scorer, "own_logprobs")
