"""What a model has made of prompts, kept for when they are asked again.

Trajectories of a group pass through the same states, at different times: most prompts of an
iteration were asked before in it. Keys and values of a prompt are those of any batch, but for the
rounding of the arithmetic.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

KEPT_BYTES = 1 << 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Prefill:
    """One prompt."""

    layers: tuple[tuple[Tensor, Tensor], ...]
    """[length, heads, head size] keys and values of each layer."""
    logits: Tensor
    """[vocabulary] of the token that follows."""

    @property
    def length(self) -> int:
        """Tokens of the prompt."""
        return self.layers[0][0].shape[0]

    @property
    def num_bytes(self) -> int:
        """Memory that it takes."""
        tensors = [self.logits, *(tensor for layer in self.layers for tensor in layer)]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


class Prefills:
    """Prompts of one model, by their tokens; those asked longest ago are dropped first."""

    def __init__(self, max_bytes: int) -> None:
        """Keep nothing yet.

        Args:
            max_bytes: Bound on the memory of those that are kept.
        """
        self._max_bytes = max_bytes
        self._kept: OrderedDict[tuple[int, ...], Prefill] = OrderedDict()
        self.num_bytes = 0

    def get(self, prompt: tuple[int, ...]) -> Prefill | None:
        """Return what is kept of a prompt."""
        if prompt in self._kept:
            self._kept.move_to_end(prompt)
        return self._kept.get(prompt)

    def put(self, prompt: tuple[int, ...], prefill: Prefill) -> None:
        """Keep a prompt that is not there, if there is room at all."""
        if prefill.num_bytes > self._max_bytes:
            return
        self._kept[prompt] = prefill
        self.num_bytes += prefill.num_bytes
        while self.num_bytes > self._max_bytes:
            _, dropped = self._kept.popitem(last=False)
            self.num_bytes -= dropped.num_bytes


def can_part(cache: DynamicCache) -> bool:
    """Return whether prompts of a batch can be kept apart: every layer has all their tokens."""
    return all(type(layer) is DynamicLayer for layer in cache.layers)


def part(cache: Any, logits: Tensor, lengths: Sequence[int]) -> list[Prefill]:
    """Return each prompt of a batch, in memory of its own.

    Args:
        cache: A DynamicCache that `can_part`, of the batch padded on the left.
        logits: [rows, vocabulary].
        lengths: [rows] tokens of each prompt.
    """
    return [
        Prefill(
            layers=tuple(
                (_row(layer.keys, row, length), _row(layer.values, row, length))
                for layer in cache.layers
            ),
            logits=logits[row].clone(),
        )
        for row, length in enumerate(lengths)
    ]


def join(cache: DynamicCache, prefills: Sequence[Prefill]) -> None:
    """Fill an empty cache with a row for each prompt, padded on the left.

    Args:
        cache: Of the model that made them.
        prefills: The rows.
    """
    for number in range(len(prefills[0].layers)):
        keys, values = zip(*(prefill.layers[number] for prefill in prefills), strict=True)
        cache.update(_rows(keys), _rows(values), number)


def _row(states: Tensor, row: int, length: int) -> Tensor:
    return states[row, :, states.shape[2] - length :].transpose(0, 1).clone()


def _rows(states: Sequence[Tensor]) -> Tensor:
    """Return [rows, heads, length, head size]."""
    padded = pad_sequence(list(states), batch_first=True, padding_side="left")
    return padded.transpose(1, 2)
