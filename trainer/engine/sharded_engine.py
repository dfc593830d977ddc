"""A model whose weights, gradients and moments are spread over processes by FSDP2."""

from typing import cast

from torch import Tensor
from torch.distributed.fsdp import FSDPModule

from graphcredit.trainer.engine.engine import TrainingEngine


class ShardedEngine(TrainingEngine):
    """A model in shards, layer by layer, as `load_sharded` returns it.

    Weights are float32; the arithmetic may be bfloat16. A single process uses it for bfloat16.
    """

    def backward(self, loss: Tensor, *, is_last: bool) -> None:
        """Add the gradient of a micro-batch; processes exchange gradients as the options say."""
        is_exchanged = is_last or self._reduces_each
        cast("FSDPModule", self._scorer).set_requires_gradient_sync(is_exchanged)
        # Gradients are averaged over the processes, and the loss is a sum.
        (loss * self.world_size).backward()
