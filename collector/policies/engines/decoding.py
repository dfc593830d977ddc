"""Read prompts with a transformers model, and continue them a token at a time.

What the prompts of a batch begin with in common is read once, and kept for the next batch; each
distinct prompt is read once. Then the rows move to a KV cache of a fixed size, in which a token
changes no shape. On a GPU the step that makes a token is captured as a CUDA graph for each size,
and replayed: to launch the hundreds of kernels of a small model takes longer than to run them.

Models that forget what is far behind, by sliding windows or a state, have caches that grow.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import Cache, DynamicLayer, StaticLayer

_LEAST_SHARED = 16
"""Fewest tokens of a common beginning that are worth a pass of their own."""
_ROOM = 64
"""The length of a fixed cache is a multiple of so many tokens."""
_MOST_KEPT = 1 << 16
"""Most columns of all rows in fixed caches that are kept, with their CUDA graphs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Read:
    """Prompts that a model has read."""

    cache: Cache
    mask: Tensor
    """[rows, columns] 1 where a column of the cache is a token of the row."""
    logits: Tensor
    """[rows, vocabulary] logits of the next tokens."""


class Decoder:
    """A model that continues prompts; it keeps what later ones may use."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self._shared: tuple[int, ...] = ()
        self._shared_states: list[tuple[Tensor, Tensor]] = []
        self._fixed: dict[tuple[int, int], _FixedCache] = {}
        layers = DynamicCache(config=model.config).layers
        self._keeps_all = all(type(layer) is DynamicLayer for layer in layers)

    def forget(self) -> None:
        """Forget the beginning that earlier prompts had in common."""
        self._shared, self._shared_states = (), []

    def begin(self, prompts: Sequence[tuple[int, ...]]) -> "Rows":
        """Read the distinct prompts, and return a row for each prompt."""
        distinct = list(dict.fromkeys(prompts))
        read = self._read(distinct)
        row_of = {prompt: row for row, prompt in enumerate(distinct)}
        chosen = self._put([row_of[prompt] for prompt in prompts])
        return (_FixedRows if self._keeps_all else _GrowingRows)(self, read, chosen)

    def fixed(self, num_rows: int, num_columns: int) -> "_FixedCache":
        """Return an empty cache for so many rows, and for more columns than so many."""
        length = (num_columns // _ROOM + 1) * _ROOM
        if self.model.device.type != "cuda":
            return _FixedCache(self.model, num_rows, length)
        size = (1 << (num_rows - 1).bit_length(), length)
        cache = self._fixed.pop(size, None) or _FixedCache(self.model, *size)
        self._fixed[size] = cache
        while len(self._fixed) > 1 and sum(map(math.prod, self._fixed)) > _MOST_KEPT:
            del self._fixed[next(iter(self._fixed))]
        return cache

    def _read(self, prompts: Sequence[tuple[int, ...]]) -> _Read:
        """Read prompts from where they begin to differ, padded before that."""
        cache, known = self._begun(prompts)
        longest = max(map(len, prompts)) - known
        pads = [known + longest - len(prompt) for prompt in prompts]
        mask = self._put([[1] * known + [0] * pad + [1] * (longest - pad) for pad in pads])
        rows = zip(pads, prompts, strict=True)
        ids = self._put([[0] * pad + list(prompt[known:]) for pad, prompt in rows])
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, known:]
        return _Read(
            cache=cache, mask=mask, logits=forward(self.model, ids, mask, positions, cache)
        )

    def _begun(self, prompts: Sequence[tuple[int, ...]]) -> tuple[Cache, int]:
        """Return a cache that has what the prompts begin with, and how many tokens that is."""
        cache = DynamicCache(config=self.model.config)
        common = _common(prompts)
        known = len(self._shared)
        if not known or common[:known] != self._shared:
            if not self._keeps_all or len(prompts) == 1 or len(common) < _LEAST_SHARED:
                return cache, 0
            self._share(common)
        for number, (keys, values) in enumerate(self._shared_states):
            shape = (len(prompts), -1, -1, -1)
            cache.update(keys.expand(shape), values.expand(shape), number)
        return cache, len(self._shared)

    def _share(self, ids: tuple[int, ...]) -> None:
        """Read a beginning, and keep it."""
        cache, row = DynamicCache(config=self.model.config), self._put([ids])
        positions = torch.arange(len(ids), device=row.device)[None]
        forward(self.model, row, torch.ones_like(row), positions, cache)
        layers: list[Any] = cache.layers
        self._shared, self._shared_states = ids, [(each.keys, each.values) for each in layers]

    def _put(self, numbers: Any) -> Tensor:
        return torch.as_tensor(numbers, device=self.model.device)


class Rows:
    """The rows of a batch that have not ended."""

    logits: Tensor
    """[rows, vocabulary] logits of the next tokens."""

    def go_on(self, kept: Sequence[int], ids: Tensor) -> None:
        """Keep some rows, append their sampled tokens, and compute the logits of the next ones.

        Args:
            kept: Numbers of the rows that have not ended.
            ids: [rows] sampled tokens of all rows.
        """
        raise NotImplementedError


class _GrowingRows(Rows):
    """Rows whose cache grows by a column with each token."""

    def __init__(self, decoder: Decoder, read: _Read, chosen: Tensor) -> None:
        self._decoder = decoder
        self._cache: Any = read.cache
        self._mask, self.logits = read.mask, read.logits
        self._select(chosen)

    def go_on(self, kept: Sequence[int], ids: Tensor) -> None:
        if len(kept) < len(ids):
            rows = torch.as_tensor(kept, device=ids.device)
            self._select(rows)
            ids = ids[rows]
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(kept), 1)], dim=1)
        positions = self._mask.sum(-1, keepdim=True) - 1
        self.logits = forward(self._decoder.model, ids[:, None], self._mask, positions, self._cache)

    def _select(self, rows: Tensor) -> None:
        self._cache.batch_select_indices(rows)
        self._mask, self.logits = self._mask[rows], self.logits[rows]


class _FixedRows(Rows):
    """Rows in a fixed cache; they move to another one when it is full, or half of them ended."""

    def __init__(self, decoder: Decoder, read: _Read, chosen: Tensor) -> None:
        self._decoder = decoder
        self.logits = read.logits[chosen]
        self._cache = decoder.fixed(len(chosen), read.mask.shape[1])
        self._cache.take(read.cache, read.mask, chosen)
        self._places = torch.arange(len(chosen), device=chosen.device)

    def go_on(self, kept: Sequence[int], ids: Tensor) -> None:
        if len(kept) < len(ids):
            rows = torch.as_tensor(kept, device=ids.device)
            ids, self._places = ids[rows], self._places[rows]
        now = self._cache
        if now.num_columns == now.length or 2 * len(kept) <= now.num_rows:
            self._cache = self._decoder.fixed(len(kept), now.num_columns)
            if self._cache is not now:
                self._cache.take(now.cache, now.mask[:, : now.num_columns], self._places)
                self._places = torch.arange(len(kept), device=ids.device)
        self.logits = self._cache.step(self._places, ids)[self._places]


class _FixedLayer(StaticLayer):
    """A layer of a fixed cache, without what `torch.compile` needs."""

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        self.dtype, self.device = key_states.dtype, key_states.device
        rows, heads = key_states.shape[:2]
        self.keys = key_states.new_zeros(rows, heads, self.max_cache_len, key_states.shape[-1])
        self.values = value_states.new_zeros(
            rows, heads, self.max_cache_len, value_states.shape[-1]
        )
        self.cumulative_length = self.cumulative_length.to(self.device)
        self.is_initialized = True


class _FixedCache:
    """A KV cache of a fixed size, and the step that makes the next token of each row."""

    def __init__(self, model: Any, num_rows: int, length: int) -> None:
        self._model = model
        self.num_rows, self.length, self.num_columns = num_rows, length, 0
        num_layers = len(DynamicCache(config=model.config).layers)
        self.cache = Cache(layers=[_FixedLayer(length) for _ in range(num_layers)])
        self.mask = torch.zeros((num_rows, length), dtype=torch.long, device=model.device)
        self._ids = self.mask.new_zeros(num_rows, 1)
        self._positions = self.mask.new_zeros(num_rows, 1)
        self._graph: Any = None

    def take(self, cache: Cache, mask: Tensor, rows: Tensor) -> None:
        """Copy rows of another cache, in place of what is here; rows beyond them copy the last.

        Args:
            cache: The other cache.
            mask: [its rows, columns] its tokens.
            rows: Numbers of its rows.
        """
        rows = torch.cat([rows, rows[-1:].expand(self.num_rows - len(rows))])
        columns = self.num_columns = mask.shape[1]
        pairs: list[tuple[Any, Any]] = list(zip(self.cache.layers, cache.layers, strict=True))
        if not pairs[0][0].is_initialized:
            for mine, other in pairs:
                mine.lazy_initialization(other.keys[rows, :, :1], other.values[rows, :, :1])
            self._capture()
        for mine, other in pairs:
            mine.keys[:, :, :columns] = other.keys[rows, :, :columns]
            mine.values[:, :, :columns] = other.values[rows, :, :columns]
            mine.cumulative_length.fill_(columns)
        self.mask.zero_()
        self.mask[:, :columns] = mask[rows]
        self._positions.copy_(self.mask.sum(-1, keepdim=True) - 1)

    def step(self, places: Tensor, ids: Tensor) -> Tensor:
        """Append tokens to the rows at some places; return [rows, vocabulary] logits of all."""
        self._ids[places, 0] = ids
        self._positions[places] += 1  # not of rows that ended: they may be at their last position
        self.mask[:, self.num_columns] = 1
        self.num_columns += 1
        if self._graph is None:
            self._forward()
        else:
            self._graph.replay()
        return self._logits

    def _forward(self) -> None:
        self._logits = forward(self._model, self._ids, self.mask, self._positions, self.cache)

    def _capture(self) -> None:
        """Capture the step as a CUDA graph, where that is possible; it leaves garbage here."""
        if self._model.device.type != "cuda" or _turns_with_length(self._model.config):
            return
        self.mask.fill_(1)
        graph, aside = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            self._forward()  # what libraries set up at their first call cannot be captured
        here = torch.cuda.current_stream()
        here.wait_stream(aside)
        try:
            # A capture that fails leaves its stream in force, unless one around it ends.
            with torch.cuda.stream(here), torch.cuda.graph(graph):
                self._forward()
        except RuntimeError as error:
            text = f"without a CUDA graph, a token takes longer: its capture failed ({error})"
            warnings.warn(text, stacklevel=2)
        else:
            self._graph = graph


def _common(prompts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return what all prompts begin with, and after which each has a token more."""
    first, last, least = min(prompts), max(prompts), min(map(len, prompts)) - 1
    return first[: next((n for n in range(least) if first[n] != last[n]), least)]


def forward(model: Any, ids: Tensor, mask: Tensor, positions: Tensor, cache: Cache) -> Tensor:
    """Return [rows, vocabulary] logits of the tokens after the last ones, and fill the cache."""
    out = model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=positions,
        past_key_values=cache,
        use_cache=True,
        logits_to_keep=1,
    )
    return out.logits[:, -1]


def _turns_with_length(config: Any) -> bool:
    """Return whether the rotation of positions depends on the longest row, which is waited for."""
    rope = getattr(config.get_text_config(), "rope_parameters", None) or {}
    kinds = {each.get("rope_type") for each in (rope, *rope.values()) if isinstance(each, dict)}
    return bool(kinds & {"dynamic", "longrope"})
