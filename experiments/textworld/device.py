"""What a process computes on: settled before anything asks torch, which looks only once."""

import os

from graphcredit.trainer.engine.distributed import choose_device


def use_device(device: str) -> None:
    """Let this process, and those that it starts, see no GPU, or make sure that there is one.

    Args:
        device: cpu or cuda.

    Raises:
        InputError: A GPU is asked for and there is none.
    """
    if device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    choose_device(device)
