"""The process group: a single process, or the ranks that torchrun starts."""

import json
import os
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, cast

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch.distributed import HashStore  # pyright: ignore[reportPrivateImportUsage]

from graphcredit.store.errors import InputError

_GLOO_SECONDS = 0.5
"""Wait before the process group is destroyed; see `destroy_process_group`."""


class Process:
    """One of `world_size` processes that do the same things in the same order.

    Reductions, barriers and broadcasts are collective: every process has to call them.
    """

    def __init__(self, device: torch.device, group: dist.ProcessGroup | None = None):
        """Read rank and world size; `init_process_group` has been called.

        Args:
            device: Of this process, where what is exchanged is.
            group: All processes, for exchanges of their own; by default those of everybody.
        """
        self.device = device
        self.group = group
        """What exchanges go through."""
        self.rank = dist.get_rank() if dist.is_initialized() else 0
        self.world_size = dist.get_world_size() if dist.is_initialized() else 1

    def beside(self, *, minutes: float) -> "Process":
        """Return this process for a thread of its own; all processes call it.

        Args:
            minutes: How long an exchange waits for the other processes. All are on the CPU.
        """
        group = None
        if self.world_size > 1:
            group = dist.new_group(backend="gloo", timeout=timedelta(minutes=minutes))
        return Process(torch.device("cpu"), cast("dist.ProcessGroup | None", group))

    @property
    def device_name(self) -> str:
        """Name of the device."""
        is_gpu = self.device.type == "cuda"
        return torch.cuda.get_device_name(self.device) if is_gpu else "cpu"

    def peak_memory(self) -> int | None:
        """Return the most bytes of the device that were in use since this was last asked.

        None where the device's memory is the machine's.
        """
        if self.device.type != "cuda":
            return None
        peak = torch.cuda.max_memory_allocated(self.device)
        torch.cuda.reset_peak_memory_stats(self.device)
        return peak

    def put(self, array: NDArray[Any]) -> torch.Tensor:
        """Return a copy of an array on the device.

        A GPU is not waited for: it copies from pinned memory when it has done what it was asked to.
        """
        if self.device.type != "cuda":
            return torch.tensor(array, device=self.device)
        return torch.tensor(array).pin_memory().to(self.device, non_blocking=True)

    def all_reduce_sum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum over all processes, element by element."""
        return self._reduce(values, dist.ReduceOp.SUM)

    def all_reduce_max(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the maximum over all processes, element by element."""
        return self._reduce(values, dist.ReduceOp.MAX)

    def barrier(self) -> None:
        """Wait for all processes."""
        if self.world_size > 1:
            dist.barrier(self.group)

    def broadcast(self, value: Any, *, source: int = 0) -> Any:
        """Return the value of one process, by default of the first, sent as JSON."""
        if self.world_size == 1:
            return value
        data = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)
        length = torch.tensor([len(data)], device=self.device)
        dist.broadcast(length, src=source, group=self.group)
        received = data if self.rank == source else torch.empty(int(length), dtype=torch.uint8)
        received = received.to(self.device)
        dist.broadcast(received, src=source, group=self.group)
        return json.loads(bytes(received.cpu().numpy()))

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all processes, by rank, sent as JSON."""
        return [self.broadcast(value, source=rank) for rank in range(self.world_size)]

    def _reduce(self, values: NDArray[np.float64], operation: Any) -> NDArray[np.float64]:
        if self.world_size == 1:
            return values
        reduced = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(reduced, operation, group=self.group)
        return reduced.cpu().numpy()


def is_first_rank() -> bool:
    """Return whether this process is the only one, or the first that torchrun started."""
    return int(os.environ.get("RANK", "0")) == 0


def choose_device(device: str) -> torch.device:
    """Return this process' device.

    Args:
        device: auto, cpu or cuda; auto takes a GPU if one is available.

    Raises:
        InputError: `device` is cuda and no GPU is available.
    """
    if device == "cpu" or (device == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise InputError("device cuda needs a GPU that torch can use: found none. Take device cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))


def init_process_group(device: torch.device, *, alone_too: bool, minutes: float) -> None:
    """Initialise the process group, if torchrun started several processes.

    Args:
        device: Of this process.
        alone_too: Whether a single process gets a group of one, which FSDP2 needs.
        minutes: How long an exchange waits for the other processes.
    """
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if dist.is_initialized():
        return
    # What is in the memory of the host is exchanged too: the check of a model, offloaded shards.
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        dist.init_process_group(backend, timeout=timedelta(minutes=minutes))
    elif alone_too:
        dist.init_process_group(backend, store=HashStore(), rank=0, world_size=1)


def share_gpu() -> Callable[[], None]:
    """Return what makes this thread's GPU that of another thread, which calls it first.

    A thread begins with the first GPU, whoever started it. There every process of a machine would
    take memory for itself as soon as a library asks for the thread's stream.
    """
    if not torch.cuda.is_initialized():
        return lambda: None
    return partial(torch.cuda.set_device, torch.cuda.current_device())


def destroy_process_group() -> None:
    """Destroy the process group; every process calls it once, last.

    It waits for all processes, so it must not be called after an error of one process alone: that
    process exits, and torchrun ends the others.
    """
    if not dist.is_initialized():
        return
    if dist.get_world_size() > 1:
        dist.barrier()
        # A thread of gloo frees its last tensor a moment after the exchange. If the
        # interpreter exits before that, the process aborts.
        time.sleep(_GLOO_SECONDS)
    dist.destroy_process_group()
