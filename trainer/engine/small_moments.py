"""AdamW whose moments are kept in bfloat16, rounded so that nothing is lost on average."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.optim import AdamW
from torch.optim.adamw import adamw

from graphcredit.trainer.engine.sharding import local_part

_PIECE = 1 << 21
"""Numbers that are updated at a time, because they take float32 copies of their moments."""


class SmallMomentsAdamW(AdamW):
    """AdamW in float32 arithmetic, with bfloat16 moments between the updates.

    A moment is rounded up or down at random, with odds that make its mean the exact value. Rounding
    to the nearest would stop the second moment: with beta2 = 0.999 an update changes it by less
    than the 1/256 that tells one bfloat16 from the next.

    What is drawn depends on the update, the parameter and the rows of it that a process has. So the
    same training on as many shards has the same bits, and copies of a shard stay equal.
    """

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Take one step; see `AdamW`."""
        assert closure is None
        numbered = ((group, p) for group in self.param_groups for p in group["params"])
        for number, (group, parameter) in enumerate(numbered):
            if parameter.grad is not None:
                self._update(parameter, parameter.grad, group, number)

    def _update(self, parameter: Tensor, slope: Tensor, group: dict[str, Any], number: int) -> None:
        state = self.state[parameter]
        device = local_part(parameter).device
        if not state:
            state["step"] = torch.zeros((), device=device if group["fused"] else "cpu")
            for moment in ("exp_avg", "exp_avg_sq"):
                state[moment] = torch.zeros_like(parameter, dtype=torch.bfloat16)
        before = state["step"].clone()
        generator = torch.Generator(device)
        generator.manual_seed(_seed(int(before), number, _first_row(parameter)))
        whole = (parameter, local_part(slope).contiguous(), state["exp_avg"], state["exp_avg_sq"])
        for weights, gradient, mean, square in _pieces(*whole):
            exact_mean, exact_square = mean.float(), square.float()
            state["step"].copy_(before)
            adamw(
                [weights],
                [gradient],
                [exact_mean],
                [exact_square],
                [],
                [state["step"]],
                foreach=False,
                fused=group["fused"],
                amsgrad=False,
                beta1=group["betas"][0],
                beta2=group["betas"][1],
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                maximize=False,
            )
            round_at_random(exact_mean, mean, generator)
            round_at_random(exact_square, square, generator)


def round_at_random(exact: Tensor, into: Tensor, generator: torch.Generator) -> None:
    """Round float32 to bfloat16, up or down, so that the mean of what may come out is exact.

    Args:
        exact: Float32, finite.
        into: Bfloat16, of the same shape.
        generator: On the same device.
    """
    # A bfloat16 is the upper half of a float32.
    noise = torch.randint(
        1 << 16, exact.shape, dtype=torch.int32, device=exact.device, generator=generator
    )
    into.copy_(noise.add_(exact.view(torch.int32)).bitwise_and_(-(1 << 16)).view(torch.float32))


def _pieces(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Yield the same piece of each tensor's local part, to be changed in place."""
    flat = [local_part(tensor).view(-1) for tensor in tensors]
    # A process whose shard is empty makes the step too.
    for start in range(0, max(len(flat[0]), 1), _PIECE):
        yield tuple(each[start : start + _PIECE] for each in flat)


def _first_row(tensor: Tensor) -> int:
    """Return the first row of a tensor that this process has."""
    if not isinstance(tensor, DTensor):
        return 0
    (mine,) = tensor.__create_chunk_list__()
    return mine.offsets[0] if mine.offsets else 0


def _seed(update: int, number: int, row: int) -> int:
    return random.Random(f"{update}/{number}/{row}").getrandbits(63)
