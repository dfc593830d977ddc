"""The processes that run a micro-batch together, and what goes between them."""

from dataclasses import dataclass
from datetime import timedelta
from typing import cast

import torch
import torch.distributed as dist
from torch import Tensor

from graphcredit.store.errors import InputError
from graphcredit.trainer.options import ModelOptions


@dataclass(frozen=True, kw_only=True, slots=True)
class NeighbouringRanks:
    """A `ContextGroup` of processes whose ranks follow each other."""

    group: dist.ProcessGroup
    rank: int
    size: int

    def exchange(self, parts: Tensor) -> Tensor:
        """Send part n of [N, ...] to process n; return [N, ...] what each process sent here."""
        received = torch.empty_like(parts)
        dist.all_to_all_single(received, parts, group=self.group)
        return received

    def gather(self, part: Tensor) -> Tensor:
        """Return [N * n, ...] the parts [n, ...] of all processes, one after the other."""
        parts = [torch.empty_like(part) for _ in range(self.size)]
        dist.all_gather(parts, part, group=self.group)
        return torch.cat(parts)


def join_context(options: ModelOptions, *, minutes: float) -> NeighbouringRanks | None:
    """Return the context group of this process, if there are any; all processes call it.

    Args:
        options: How many processes a group has.
        minutes: How long an exchange waits for the other processes.

    Raises:
        InputError: The groups cannot be made of so many processes.
    """
    size = options.context_parallel
    num_data_processes(options, dist.get_world_size() if dist.is_initialized() else 1)
    if size == 1:
        return None
    group, _ = dist.new_subgroups(size, timeout=timedelta(minutes=minutes))
    return NeighbouringRanks(
        group=cast("dist.ProcessGroup", group), rank=dist.get_rank() % size, size=size
    )


def num_data_processes(options: ModelOptions, num_processes: int) -> int:
    """Return over how many context groups the micro-batches of an update are spread.

    Raises:
        InputError: The size of a group does not divide the number of the processes.
    """
    if num_processes % options.context_parallel:
        raise InputError(
            "context_parallel must divide the number of processes, so that each micro-batch has as "
            f"many: got {options.context_parallel} processes for a micro-batch, and "
            f"{num_processes} in all. Start a multiple of {options.context_parallel} processes by "
            "torchrun"
        )
    return num_processes // options.context_parallel
