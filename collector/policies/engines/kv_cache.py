"""A cache of prefilled prompts: their keys and values (KV cache) and the logits that follow.

Trajectories of a group pass through the same states at different times, so most prompts of an
iteration occur several times in it. Keys and values of a prompt do not depend on its batch, apart
from rounding.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from cachetools import LRUCache
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence
from transformers.cache_utils import DynamicLayer

KEPT_BYTES = 1 << 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Prefill:
    """The KV cache of one prompt, and the logits of the next token."""

    layers: tuple[tuple[Tensor, Tensor], ...]
    """[length, heads, head size] keys and values of each layer."""
    logits: Tensor
    """[vocabulary] logits of the next token."""

    @property
    def num_bytes(self) -> int:
        """Bytes of all its tensors."""
        tensors = [self.logits, *(tensor for layer in self.layers for tensor in layer)]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    def copy(self) -> "Prefill":
        """Return a copy that does not share memory with a batch."""
        layers = tuple((keys.clone(), values.clone()) for keys, values in self.layers)
        return Prefill(layers=layers, logits=self.logits.clone())


class Prefills:
    """An LRU cache of one model's prefills, by the tokens of the prompt."""

    def __init__(self, max_bytes: int) -> None:
        """Start with an empty cache.

        Args:
            max_bytes: Most bytes of all prefills in the cache.
        """
        self._kept: LRUCache[tuple[int, ...], Prefill] = LRUCache(
            max_bytes, getsizeof=lambda prefill: prefill.num_bytes
        )

    @property
    def num_bytes(self) -> int:
        """Bytes of all prefills in the cache."""
        return int(self._kept.currsize)

    def get(self, prompt: tuple[int, ...]) -> Prefill | None:
        """Return the prefill of a prompt, or None."""
        return self._kept.get(prompt)

    def put(self, prompt: tuple[int, ...], prefill: Prefill) -> None:
        """Add a copy of the prefill of a new prompt, unless it alone exceeds the limit."""
        if prefill.num_bytes <= self._kept.maxsize:
            self._kept[prompt] = prefill.copy()


def can_part(cache: Any) -> bool:
    """Return whether a batch's cache can be split by prompt: every layer keeps all tokens.

    Args:
        cache: A DynamicCache that a model has filled.
    """
    are_whole = [type(layer) is DynamicLayer and layer.is_initialized for layer in cache.layers]
    return bool(are_whole) and all(are_whole)


def part(cache: Any, logits: Tensor, lengths: Sequence[int]) -> Iterator[Prefill]:
    """Split the cache of a batch: yield the prefill of each prompt, as a view.

    Args:
        cache: A DynamicCache for which `can_part` holds; the batch is padded on the left.
        logits: [rows, vocabulary] logits of the next tokens.
        lengths: [rows] number of tokens of each prompt.
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
    """Add a row for each prefill to a batch, padded on the left; one layer after the other.

    Args:
        cache: A DynamicCache for which `can_part` holds, or an empty one.
        prefills: The prefills to add.
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
    """Return both batches as one, [rows, heads, length, head size], padded to the longer length."""
    length = max(above.shape[2], below.shape[2])
    return torch.cat([pad(each, (0, 0, length - each.shape[2], 0)) for each in (above, below)])
