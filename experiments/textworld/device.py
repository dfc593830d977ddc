"""Choose a process's device before torch is asked for one, because torch looks only once."""

import os

from graphcredit.trainer.engine.distributed import choose_device


def use_device(device: str) -> None:
    """Hide all GPUs from this process and its children, or check that there is a GPU.

    Args:
        device: cpu or cuda.

    Raises:
        InputError: `device` is cuda and there is no GPU.
    """
    if device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    choose_device(device)
