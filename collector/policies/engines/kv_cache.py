"""What a model has made of prompts, kept for when they are asked again.

Trajectories of a group pass through the same states, at different times: most prompts of an
iteration were asked before in it. Keys and values of a prompt are those of any batch, but for the
rounding of the arithmetic.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence
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
    def num_bytes(self) -> int:
        """Memory that it takes by itself."""
        tensors = [self.logits, *(tensor for layer in self.layers for tensor in layer)]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    def copy(self) -> "Prefill":
        """Return the same in memory of its own."""
        layers = tuple((keys.clone(), values.clone()) for keys, values in self.layers)
        return Prefill(layers=layers, logits=self.logits.clone())


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
        """Keep a copy of a prompt that is not there, if there is room at all."""
        if prefill.num_bytes > self._max_bytes:
            return
        self.num_bytes += prefill.num_bytes
        while self.num_bytes > self._max_bytes:
            _, dropped = self._kept.popitem(last=False)
            self.num_bytes -= dropped.num_bytes
        self._kept[prompt] = prefill.copy()


def can_part(cache: Any) -> bool:
    """Return whether prompts of a batch can be kept apart: every layer has all their tokens.

    Args:
        cache: A DynamicCache that a model has filled.
    """
    are_whole = [type(layer) is DynamicLayer and layer.is_initialized for layer in cache.layers]
    return bool(are_whole) and all(are_whole)


def part(cache: Any, logits: Tensor, lengths: Sequence[int]) -> Iterator[Prefill]:
    """Yield each prompt of a batch, as a view of it.

    Args:
        cache: A DynamicCache that `can_part`, of the batch padded on the left.
        logits: [rows, vocabulary].
        lengths: [rows] tokens of each prompt.
    """
    for row, length in enumerate(lengths):
        yield Prefill(
            layers=tuple(
                (_row(layer.keys, row, length), _row(layer.values, row, length))
                for layer in cache.layers
            ),
            logits=logits[row],
        )


def extend(cache: Any, prefills: Sequence[Prefill]) -> None:
    """Add a row for each prompt to a batch, padded on the left; one layer after the other.

    Args:
        cache: A DynamicCache that `can_part`, or an empty one.
        prefills: The rows.
    """
    for number in range(len(prefills[0].layers)):
        keys, values = (
            pad_sequence(list(states), batch_first=True, padding_side="left").transpose(1, 2)
            for states in zip(*(prefill.layers[number] for prefill in prefills), strict=True)
        )
        if cache.get_seq_length(number):
            layer = cache.layers[number]
            layer.keys = _stacked(layer.keys, keys)
            layer.values = _stacked(layer.values, values)
        else:
            cache.update(keys, values, number)


def _row(states: Tensor, row: int, length: int) -> Tensor:
    return states[row, :, states.shape[2] - length :].transpose(0, 1)


def _stacked(above: Tensor, below: Tensor) -> Tensor:
    """Return the rows of both, [rows, heads, length, head size] padded to the longer length."""
    length = max(above.shape[2], below.shape[2])
    return torch.cat([pad(each, (0, 0, length - each.shape[2], 0)) for each in (above, below)])
