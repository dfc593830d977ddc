"""Vision-language models: their input for a step's images, and the positions of its tokens.

Qwen2-VL and Qwen2.5-VL: a prompt has a placeholder token for each vector that the vision tower
makes of an image, and each token has a position in time, height and width (M-RoPE, arXiv
2409.12191). Other families give images to deeper layers too, or mask them in ways of their own.
"""

import io
import warnings
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from transformers import AutoImageProcessor

from graphcredit.store.errors import InputError, MissingDependencyError, library_errors
from graphcredit.store.extras import how_to_install
from graphcredit.trainer.batching.packed_batch import Pictures, Sample
from graphcredit.trainer.data.ragged import Bools, Ints, Singles

FAMILIES = frozenset({"qwen2_vl", "qwen2_5_vl"})
"""The `model_type` of each family whose images can be trained on."""

_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")


def has_vision(config: Any) -> bool:
    """Return whether a model of transformers is of a family whose images can be trained on."""
    return config.model_type in FAMILIES


class ImageReader:
    """Reads images as the processor of a model does, and places them among tokens."""

    def __init__(self, directory: Path, config: Any) -> None:
        self._directory, self._config = directory, config
        self._merge: int = config.vision_config.spatial_merge_size

    def seen(self, sample: Sample, where: str) -> Sample:
        """Return a step with its pictures and positions; without images as it is.

        Raises:
            InputError: As `check`, or an image is damaged.
            MissingDependencyError: Pillow is not installed.
        """
        if not sample.images:
            self._compare(sample, [], where)
            return sample
        patches, grids = self._read(sample.images, where)
        self._compare(sample, grids.prod(1) // self._merge**2, where)
        is_image = self._is_image(sample)
        return sample._replace(
            pictures=Pictures(patches=patches, grids=grids, places=np.flatnonzero(is_image)),
            positions=image_positions(is_image, grids, self._merge),
        )

    def check(self, sample: Sample, where: str) -> None:
        """Refuse a step whose tokens do not fit its images, by the sizes in their files' heads.

        Raises:
            InputError: They do not fit, there are tokens of a video, or an image cannot be read.
            MissingDependencyError: Pillow is not installed.
        """
        self._compare(sample, self.num_vectors(sample.images, where), where)

    @property
    def token(self) -> int:
        """Return the placeholder of a vector."""
        return self._config.image_token_id

    def num_vectors(self, images: Iterable[bytes], where: str) -> list[int]:
        """Return how many vectors each image makes, by the size in its file's head.

        Raises:
            InputError, MissingDependencyError: As `check`.
        """
        counts: list[int] = []
        for image in images:
            with _opened(image, where) as opened:
                width, height = opened.size
            patches = int(self._processor.get_number_of_image_patches(height, width))
            counts.append(patches // self._merge**2)
        return counts

    def blank(self) -> Pictures:
        """Return the smallest image."""
        vision = self._config.vision_config
        size = vision.in_channels * vision.temporal_patch_size * vision.patch_size**2
        return Pictures(
            patches=np.zeros((self._merge**2, size), np.float32),
            grids=np.array([[1, self._merge, self._merge]]),
            places=np.empty(0, np.int64),
        )

    def _is_image(self, sample: Sample) -> Bools:
        """Return which tokens are placeholders. One that the policy sampled is text like others."""
        is_image = sample.tokens == self._config.image_token_id
        is_image[len(sample.prompt) :] = False
        return is_image

    def _compare(self, sample: Sample, num_vectors: Iterable[int], where: str) -> None:
        """Compare the placeholders of a step with the vectors of its images."""
        image, video = self._config.image_token_id, self._config.video_token_id
        if (sample.prompt == video).any():
            raise InputError(
                f"prompts must have no videos, which cannot be trained on: {where} has tokens "
                f"{video}, which stand for one"
            )
        runs = [stop - start for start, stop in _runs(self._is_image(sample))]
        expected = [int(count) for count in num_vectors]
        if runs != expected:
            raise InputError(
                f"prompt_ids must have a token {image} for each vector of an image, the images "
                f"apart from each other: {where} has runs of {runs or 'none'}, and its "
                f"{len(sample.images)} images make {expected or 'none'}. Log the ids that the "
                "model's processor made, with all images of the prompt in their order"
            )

    def _read(self, images: tuple[bytes, ...], where: str) -> tuple[Singles, Ints]:
        """Return the patches and the grids of images."""
        opened: list[Any] = []
        for image in images:
            with _opened(image, where) as each:
                opened.append(each.convert("RGB"))
        made = self._processor(opened, return_tensors="np")
        grids = np.asarray(made["image_grid_thw"], np.int64)
        return np.asarray(made["pixel_values"], np.float32), grids

    @cached_property
    def _processor(self) -> Any:
        rule = f"{self._directory} must hold the configuration of its image processor"
        with library_errors(rule):
            return AutoImageProcessor.from_pretrained(
                self._directory, local_files_only=True, trust_remote_code=False
            )


def image_positions(is_image: Bools, grids: Ints, merge: int) -> Ints:
    """Return [3, n] the position of each token in time, height and width.

    Text counts on from the greatest position before it. The vectors of an image are at one time,
    and at their row and column in the image, counted from there.

    Args:
        is_image: [n] the token is the placeholder of a vector.
        grids: [N, 3] frames, rows and columns of patches of each image, in the order of the tokens.
        merge: Patches along a side of what one vector is made of.
    """
    positions = np.empty((3, len(is_image)), np.int64)
    begin = position = 0
    for (start, stop), grid in zip(_runs(is_image), grids, strict=True):
        position = _place_text(positions[:, begin:start], position)
        shape = (int(grid[0]), int(grid[1]) // merge, int(grid[2]) // merge)
        positions[:, start:stop] = position + np.indices(shape).reshape(3, -1)
        begin, position = stop, position + max(shape[1:])
    _place_text(positions[:, begin:], position)
    return positions


def _place_text(positions: Ints, position: int) -> int:
    """Write the positions of text from `position` on; return the next one."""
    count = positions.shape[1]
    positions[:] = position + np.arange(count)
    return position + count


def _runs(flags: Bools) -> list[tuple[int, int]]:
    """Return start and end of each run of flags that are set."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.view(np.int8), [0]]))).tolist()
    return [run for number, run in enumerate(pairwise(edges)) if number % 2 == 0]


@contextmanager
def _opened(image: bytes, where: str) -> Generator[Any]:
    """Open an image with Pillow; errors of reading it name the step."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingDependencyError(
            f"to train on images, Pillow must be installed: {how_to_install('vision')}"
        ) from error
    try:
        with warnings.catch_warnings():
            # An image of more pixels than a decompression bomb has is an error, not a warning.
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(image), formats=_FORMATS) as opened:
                yield opened
    except Exception as error:  # decoders raise many kinds
        raise InputError(
            f"an image must be a {', '.join(_FORMATS[:-1])} or {_FORMATS[-1]} file that can be "
            f"read: {where} has one that cannot ({type(error).__name__}: {error})"
        ) from error
