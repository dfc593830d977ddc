"""Processes beside each other, as torchrun starts them, but quick: libraries are loaded once."""

import os
import socket
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

from tests.forks import FORKS


def run_ranks(world_size: int, work: Callable[..., None], *args: Any) -> list[int]:
    """Run a function in so many processes; return their exit codes.

    Args:
        world_size: How many.
        work: A function of a module, called with `args` in each.
        args: Values that can be pickled.
    """
    ranks = start_ranks(world_size, work, *args)
    for rank in ranks:
        rank.join(timeout=300)
    return [rank.exitcode if rank.exitcode is not None else -1 for rank in ranks]


def start_ranks(world_size: int, work: Callable[..., None], *args: Any) -> list[BaseProcess]:
    """Start what `run_ranks` runs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(world_size)}
    ranks: list[BaseProcess] = [
        FORKS.Process(target=_run, args=({**shared, "RANK": str(rank)}, work, args))
        for rank in range(world_size)
    ]
    for rank in ranks:
        rank.start()
    return ranks


def _run(environment: dict[str, str], work: Callable[..., None], args: tuple[Any, ...]) -> None:
    os.environ.update(environment)
    work(*args)
