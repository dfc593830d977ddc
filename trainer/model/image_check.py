"""Refuse steps with images that a training would not see, or whose tokens do not fit them."""

import numpy as np

from graphcredit.store.errors import InputError
from graphcredit.trainer.batching.reader import BatchReader
from graphcredit.trainer.data.step_index import StepIndex
from graphcredit.trainer.model.source import load_eyes
from graphcredit.trainer.model.vision import FAMILIES

_AT_ONCE = 256
"""Steps whose images are in memory together."""


def check_images(
    index: StepIndex, model: str, reference: str | None, *, shares_prefixes: bool
) -> None:
    """Check the images of all steps, and those that their tokens ask for, before a model is loaded.

    Args:
        index: The steps.
        model: The model that is trained.
        reference: Another one that scores the steps, if any.
        shares_prefixes: Whether steps share prefixes.

    Raises:
        InputError: A model is blind to them, prefixes are shared, an image cannot be read, or the
            tokens of a step do not fit its images.
        MissingDependencyError: There are images, and Pillow is not installed.
    """
    if index.has_images:
        _refuse_blind(index, model)
        if reference is not None:
            _refuse_blind(index, reference)
        if shares_prefixes:
            raise InputError(
                "steps with images share no prefixes, because equal tokens may stand for different "
                "images: train without share_prefixes"
            )
    eyes = load_eyes(model)
    if eyes is None:
        return
    reader = BatchReader(index)
    for steps in np.array_split(np.arange(len(index)), -(-len(index) // _AT_ONCE)):
        for step, sample in zip(steps.tolist(), reader.samples(steps), strict=True):
            eyes.check(sample, index.where(step))


def _refuse_blind(index: StepIndex, name: str) -> None:
    if load_eyes(name) is None:
        raise InputError(
            "steps with images are trained on with a vision-language model of the families "
            f"{', '.join(sorted(FAMILIES))}: {int((index.num_images > 0).sum())} of {len(index)} "
            f"steps have images, and {name} is of another family"
        )
