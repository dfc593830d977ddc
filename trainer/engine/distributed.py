"""The process group: a single process, or the ranks that torchrun starts."""

import json
import os
import time
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch.distributed import HashStore  # pyright: ignore[reportPrivateImportUsage]

from graphcredit.store.errors import InputError

_TIMEOUT = timedelta(minutes=30)
"""How long an exchange waits for the other processes: a checkpoint of one may take minutes."""

_GLOO_SECONDS = 0.5
"""Wait before the process group is destroyed; see `destroy_process_group`."""


class Process:
    """One of `world_size` processes that do the same things in the same order.

    Reductions, barriers and broadcasts are collective: every process has to call them.
    """

    def __init__(self, device: torch.device):
        """Read rank and world size; `init_process_group` has been called."""
        self.device = device
        self.rank = dist.get_rank() if dist.is_initialized() else 0
        self.world_size = dist.get_world_size() if dist.is_initialized() else 1

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
            dist.barrier()

    def broadcast(self, value: Any, *, source: int = 0) -> Any:
        """Return the value of one process, by default of the first, sent as JSON."""
        if self.world_size == 1:
            return value
        data = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)
        length = torch.tensor([len(data)], device=self.device)
        dist.broadcast(length, src=source)
        received = data if self.rank == source else torch.empty(int(length), dtype=torch.uint8)
        received = received.to(self.device)
        dist.broadcast(received, src=source)
        return json.loads(bytes(received.cpu().numpy()))

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all processes, by rank, sent as JSON."""
        return [self.broadcast(value, source=rank) for rank in range(self.world_size)]

    def _reduce(self, values: NDArray[np.float64], operation: Any) -> NDArray[np.float64]:
        if self.world_size == 1:
            return values
        reduced = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(reduced, operation)
        return reduced.cpu().numpy()


def is_first_rank() -> bool:
    """Return whether this process is the only one, or the first that torchrun started."""
    return int(os.environ.get("RANK", "0")) == 0


def num_processes() -> int:
    """Return how many processes torchrun started; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def choose_device(device: str) -> torch.device:
    """Return this process' device.

    Raises:
        InputError: `device` is cuda and no GPU is available.
    """
    if device == "cpu" or (device == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise InputError("device cuda needs a GPU that torch can use: found none. Take device cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))


def device_memory(device: torch.device) -> int:
    """Return the bytes of a card's memory, or of the machine's."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def init_process_group(device: torch.device, *, alone_too: bool) -> None:
    """Initialise the process group, if torchrun started several processes.

    Args:
        device: Of this process.
        alone_too: Whether a single process gets a group of one, which FSDP2 needs.

    Raises:
        InputError: The processes are on several machines.
    """
    world_size = num_processes()
    if int(os.environ.get("LOCAL_WORLD_SIZE", world_size)) != world_size:
        raise InputError(
            f"a training runs on one machine, whose processes see one output directory: torchrun "
            f"started {world_size} processes on several. Give it --nnodes 1"
        )
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if dist.is_initialized():
        return
    # The check of a model is made in the memory of the host, and exchanges its shards too.
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    if world_size > 1:
        dist.init_process_group(backend, timeout=_TIMEOUT)
    elif alone_too:
        dist.init_process_group(backend, store=HashStore(), rank=0, world_size=1)


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
