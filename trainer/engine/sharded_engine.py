"""A model whose weights, gradients and moments are spread over processes by FSDP2."""

from typing import Any, cast

import torch
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

from graphcredit.trainer.engine.engine import TrainingEngine
from graphcredit.trainer.model.loading import decoder_layers
from graphcredit.trainer.model.logprobs import Scorer


class ShardedEngine(TrainingEngine):
    """A model sharded over processes by FSDP2, layer by layer.

    Weights are float32; the arithmetic may be bfloat16. A single process uses it for bfloat16.
    """

    def _placed(self, scorer: Scorer) -> Scorer:
        half = torch.bfloat16 if self._dtype == "bfloat16" else None
        options: dict[str, Any] = {
            "mesh": init_device_mesh(self.device.type, (self.world_size,)),
            "reshard_after_forward": self.world_size > 1,
            # Temperatures are inputs too, and stay float32.
            "mp_policy": MixedPrecisionPolicy(
                param_dtype=half, reduce_dtype=torch.float32, cast_forward_inputs=False
            ),
        }
        for layer in decoder_layers(scorer):
            fully_shard(layer, **options)
        fully_shard(scorer, **options)
        return scorer

    def backward(self, loss: Tensor, *, is_last: bool) -> None:
        """Add the gradient of a micro-batch; processes exchange gradients as the options say."""
        is_exchanged = is_last or self._reduces_each
        cast("FSDPModule", self._scorer).set_requires_gradient_sync(is_exchanged)
        # Gradients are averaged over the processes, and the loss is a sum.
        (loss * self.world_size).backward()
