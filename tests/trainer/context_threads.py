"""A context group of threads: what processes exchange, without any."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from typing import Any, TypeVar

import torch
from torch import Tensor

Result = TypeVar("Result")


@dataclass(frozen=True)
class ThreadContext:
    """One of the threads; see `ContextGroup`."""

    rank: int
    size: int
    table: list[Any]
    barrier: Barrier

    def exchange(self, parts: Tensor) -> Tensor:
        return torch.stack([sent[self.rank] for sent in self._all(parts)])

    def gather(self, part: Tensor) -> Tensor:
        return torch.cat(self._all(part))

    def _all(self, own: Tensor) -> list[Tensor]:
        """Return what all threads put on the table."""
        self.table[self.rank] = own.detach().clone()
        self.barrier.wait(timeout=60)
        found = list(self.table)
        self.barrier.wait(timeout=60)
        return found


def run_together(size: int, work: Callable[[ThreadContext], Result]) -> list[Result]:
    """Return what a function returns in each of the threads of a group."""
    table, barrier = [None] * size, Barrier(size)
    group = [ThreadContext(rank, size, table, barrier) for rank in range(size)]
    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(work, group))
