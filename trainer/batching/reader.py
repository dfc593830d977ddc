"""Micro-batches as arrays, read ahead of their use."""

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

import numpy as np

from graphcredit.trainer.batching.packed_batch import PackedBatch, Pictures, Sample, pack_samples
from graphcredit.trainer.batching.plan import MicroBatch
from graphcredit.trainer.data.prefix_order import PrefixOrder, sort_by_prefix
from graphcredit.trainer.data.ragged import Ints
from graphcredit.trainer.data.step_columns import TokenColumns, read_tokens, row_group_starts
from graphcredit.trainer.data.step_identity import images_of
from graphcredit.trainer.data.step_index import StepIndex, windows

CACHE_BYTES = 1 << 30
_AHEAD = 2
"""Micro-batches that are read before they are asked for."""


class Images(Protocol):
    """Turns the images of a step into the input of a model."""

    def seen(self, sample: Sample, where: str) -> Sample:
        """Return a step with its pictures and positions.

        Raises:
            InputError: Its tokens do not fit its images, or an image cannot be read.
        """
        ...

    def blank(self) -> Pictures:
        """Return the smallest image."""
        ...


class BatchReader:
    """Reads micro-batches in any order, keeping the row groups that were used last.

    It is not thread-safe.
    """

    def __init__(
        self, index: StepIndex, *, images: Images | None = None, cache_bytes: int = CACHE_BYTES
    ) -> None:
        """Open nothing yet.

        Args:
            index: The steps.
            images: What turns them into input of the model, if it takes any.
            cache_bytes: Bound on the memory of the row groups that are kept. One that is larger
                than this is read again for each micro-batch that needs it.
        """
        self._index, self._images = index, images
        # Processes go through the same layers only if all have an image in every pass.
        self._blank = images.blank() if images is not None and index.has_images else None
        self._starts: dict[int, Ints] = {}
        self._cache = _Cache(cache_bytes)

    def read(self, micro: MicroBatch) -> PackedBatch:
        """Return a micro-batch, its steps in the order they have there.

        Raises:
            SchemaError: A shard cannot be read any more.
            InputError: The images of a step cannot be read, or its tokens do not fit them.
        """
        return pack_samples(
            self._seen(micro.steps),
            advantage=self._index.advantage[micro.steps],
            weight=micro.weight,
            steps=micro.steps,
            shares_prefixes=micro.shares_prefixes,
            blank=self._blank,
        )

    def _seen(self, steps: Ints) -> list[Sample]:
        samples = self.samples(steps)
        if self._images is None:
            return samples
        return [
            self._images.seen(sample, self._index.where(step))
            for sample, step in zip(samples, steps.tolist(), strict=True)
        ]

    def ahead(self, micro_batches: Iterable[MicroBatch]) -> Iterator[PackedBatch]:
        """Yield micro-batches in order; a thread reads the next ones meanwhile.

        An error of the reading thread is raised at the turn of its micro-batch.
        """
        with ThreadPoolExecutor(1, thread_name_prefix="batches") as pool:
            waiting: deque[Future[PackedBatch]] = deque()
            try:
                for micro in micro_batches:
                    waiting.append(pool.submit(self.read, micro))
                    if len(waiting) > _AHEAD:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def samples(self, steps: Ints) -> list[Sample]:
        """Return steps in their order, reading one row group after the other.

        Raises:
            SchemaError: A shard cannot be read any more.
        """
        of_group: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for step in steps.tolist():
            shard = int(self._index.shard[step])
            group, row = self._place(shard, int(self._index.row[step]))
            of_group.setdefault((shard, group), []).append((step, row))
        samples: dict[int, Sample] = {}
        for (shard, group), members in of_group.items():
            tokens = self._tokens(shard, group)
            samples |= {step: _copy(tokens, row) for step, row in members}
            if tokens.images is None:
                continue
            root = self._index.shards[shard].root
            for step, row in members:
                images = images_of(tokens.images, row, root, self._index.where(step))
                samples[step] = samples[step]._replace(images=images)
        return [samples[step] for step in steps.tolist()]

    def _place(self, shard: int, row: int) -> tuple[int, int]:
        """Return the row group of a row, and the row within it."""
        if shard not in self._starts:
            self._starts[shard] = row_group_starts(self._index.shards[shard].path)
        starts = self._starts[shard]
        group = int(np.searchsorted(starts, row, side="right")) - 1
        return group, row - int(starts[group])

    def _tokens(self, shard: int, group: int) -> TokenColumns:
        tokens = self._cache.get((shard, group))
        if tokens is None:
            path = self._index.shards[shard].path
            first = int(self._starts[shard][group])
            tokens = self._index.source.columns(path, first, read_tokens(path, group))
            self._cache.put((shard, group), tokens)
        return tokens


def read_prefix_order(index: StepIndex) -> PrefixOrder:
    """Read all steps, and return the order in which those that begin alike are neighbours.

    Steps are compared within windows of the index (`WINDOW_TOKENS`), which bounds the memory.

    Raises:
        SchemaError: A shard cannot be read any more.
    """
    reader, window = BatchReader(index), windows(index.length)
    rank = np.empty(len(index), np.int64)
    shared: list[Ints] = []
    for number in range(int(window[-1]) + 1):
        steps = np.flatnonzero(window == number)
        order, common = sort_by_prefix([sample.tokens for sample in reader.samples(steps)])
        rank[steps[order]] = sum(map(len, shared)) + np.arange(len(steps))
        shared.append(common)
    return PrefixOrder(rank=rank, shared=np.concatenate(shared), length=index.length)


def _copy(tokens: TokenColumns, row: int) -> Sample:
    """Return one step, without images; copied, so that its row group can be let go."""
    return Sample(
        prompt=tokens.prompt[row].copy(),
        response=tokens.response[row].copy(),
        logprob=tokens.logprob[row].copy(),
        temperature=float(tokens.temperature[row]),
    )


class _Cache:
    """Row groups by (shard, row group); those used longest ago are dropped first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[tuple[int, int], TokenColumns] = OrderedDict()
        self.num_bytes = 0

    def get(self, key: tuple[int, int]) -> TokenColumns | None:
        if key in self._entries:
            self._entries.move_to_end(key)
        return self._entries.get(key)

    def put(self, key: tuple[int, int], tokens: TokenColumns) -> None:
        if tokens.num_bytes > self._max_bytes:
            return
        while self.num_bytes + tokens.num_bytes > self._max_bytes:
            _, dropped = self._entries.popitem(last=False)
            self.num_bytes -= dropped.num_bytes
        self._entries[key] = tokens
        self.num_bytes += tokens.num_bytes
