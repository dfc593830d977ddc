"""What several machines must have in common before they train: one output, and equal inputs."""

import secrets
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphcredit.store.errors import InputError
from graphcredit.store.files.atomic import TEMPORARY_SUFFIX
from graphcredit.trainer.engine.distributed import Process


def require_common(process: Process, out: Path, identity: Mapping[str, str]) -> None:
    """Check that all processes see one output directory, and train on the same; all call it.

    Without one directory, each machine would write its part of a checkpoint where no other finds
    it. Other steps or weights on one machine would be trained on without a word.

    Args:
        process: This process.
        out: The output directory, which the first process has made.
        identity: What this process would train on: a hash by the name of each input.

    Raises:
        InputError: They do not. All processes raise it.
    """
    if process.world_size == 1:
        return
    name = process.broadcast(f"seen-by-all.{secrets.token_hex(4)}{TEMPORARY_SUFFIX}")
    if process.rank == 0:
        (out / name).touch()
    process.barrier()
    found: list[dict[str, Any]] = process.gather(
        {"host": socket.gethostname(), "sees": (out / name).exists(), "identity": {**identity}}
    )
    if process.rank == 0:
        (out / name).unlink()
    blind = [f"{rank} on {own['host']}" for rank, own in enumerate(found) if not own["sees"]]
    if blind:
        raise InputError(
            f"{out} must be one directory that all processes see, for checkpoints are written and "
            f"read together: it is another one for process {', '.join(blind)}. Put --out on a "
            "file system that the machines share"
        )
    first = found[0]
    for rank, own in enumerate(found):
        differing = [k for k, value in own["identity"].items() if value != first["identity"][k]]
        if differing:
            raise InputError(
                f"all processes must train on the same: process {rank} on {own['host']} has "
                f"another {' and another '.join(differing)} than process 0 on {first['host']}. "
                "Copy the store (`graphcredit copy`) and the model again, and give the same options"
            )
