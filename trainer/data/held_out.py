"""Tasks that are held out of a training, to take a loss of."""

import hashlib

import numpy as np

from graphcredit.store.errors import InputError
from graphcredit.trainer.data.step_index import StepIndex


def hold_out(index: StepIndex, share: float) -> tuple[StepIndex, StepIndex]:
    """Split steps into those that are trained on, and those of tasks that are held out.

    A hash of its name says whether a task is: so it is in each iteration, whatever else is there.

    Args:
        index: The steps.
        share: Of all tasks that there could be; above 0 and below 1.

    Raises:
        InputError: No task is held out, or all are.
    """
    place = np.array([_place(task) for task in index.tasks])
    is_held = (place < share)[index.group]
    if is_held.all() or not is_held.any():
        raise InputError(
            f"held_out must leave some tasks to train on and some to hold out: {share:g} holds out "
            f"{int((place < share).sum())} of {len(place)}, by hashes of their names. A share "
            f"between {place.min():.3f} and {place.max():.3f} does"
            + ("" if len(place) > 1 else " where there are several tasks")
        )
    return index.only(np.flatnonzero(~is_held)), index.only(np.flatnonzero(is_held))


def _place(task: str) -> float:
    return int.from_bytes(hashlib.sha256(task.encode()).digest()[:8]) / 2**64
