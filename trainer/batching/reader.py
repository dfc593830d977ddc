"""Micro-batches as arrays, read ahead of their use and packed without padding."""

import time
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphcredit.trainer.batching.plan import MicroBatch
from graphcredit.trainer.data.ragged import Bools, Floats, Ints, Singles
from graphcredit.trainer.data.step_columns import TokenColumns, read_tokens, row_group_starts
from graphcredit.trainer.data.step_index import StepIndex

CACHE_BYTES = 1 << 30
_AHEAD = 2
"""Micro-batches that are read before they are asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PackedBatch:
    """R response tokens of S steps, and the T tokens that predict them, one sequence after another.

    Steps with the same prompt and response share a sequence, which goes through the model once.
    Each of these steps has its own response tokens, advantage and weight.
    """

    input_ids: Ints
    """[T] prompt and response of each sequence."""
    position_ids: Ints
    """[T] position within the sequence."""
    cu_seqlens: NDArray[np.int32]
    """[sequences + 1] where each sequence starts, and T."""
    max_length: int
    """Tokens of the longest sequence."""
    predictor: Ints
    """[R] position in [0, T) whose hidden state predicts the token: the one before it."""
    token_ids: Ints
    """[R] response tokens."""
    behaviour_logprobs: Singles
    """[R] log-probability under the policy that sampled the token; 0 if it is not finite."""
    is_scored: Bools
    """[R] the log-probability is finite, so that the token enters the loss."""
    temperature: Singles
    """[R] sampling temperature; 1 if it was not logged."""
    advantage: Singles
    """[R] advantage of the step."""
    weight: Singles
    """[R] weight in the optimizer step; 0 for tokens that are not scored, and in a dummy."""
    segment: Ints
    """[R] which of the S steps."""
    steps: Ints
    """[S] positions in the index."""


class Sample(NamedTuple):
    """One step."""

    prompt: NDArray[np.int32]
    """Token ids."""
    response: NDArray[np.int32]
    """Token ids."""
    logprob: Singles
    """Log-probability of each response token; one that is not finite does not enter the loss."""
    temperature: float
    """Of sampling."""


def pack_samples(
    samples: Sequence[Sample], *, advantage: Floats, weight: Floats, steps: Ints
) -> PackedBatch:
    """Return S steps as one batch, equal ones once.

    Args:
        samples: Each has a prompt and a response of at least one token.
        advantage: [S] of the step.
        weight: [S] in the optimizer step, of each of the response's tokens.
        steps: [S] the caller's numbers of the steps.
    """
    logprobs = np.concatenate([sample.logprob for sample in samples])
    temperature = np.array([sample.temperature for sample in samples], np.float32)
    distinct, sequence = _distinct(samples)
    size = np.array([len(s.prompt) + len(s.response) for s in distinct])
    starts = np.concatenate([[0], np.cumsum(size)])
    length = np.array([len(sample.response) for sample in samples])
    segment = np.repeat(np.arange(len(samples)), length)
    within = np.arange(len(segment)) - np.repeat(np.cumsum(length) - length, length)
    first = starts[sequence] + np.array([len(s.prompt) for s in samples]) - 1
    is_scored = np.isfinite(logprobs)
    return PackedBatch(
        input_ids=_joined(ids for s in distinct for ids in (s.prompt, s.response)),
        position_ids=np.arange(starts[-1]) - np.repeat(starts[:-1], size),
        cu_seqlens=starts.astype(np.int32),
        max_length=int(size.max()),
        predictor=first[segment] + within,
        token_ids=_joined(s.response for s in samples),
        behaviour_logprobs=np.where(is_scored, logprobs, 0).astype(np.float32),
        is_scored=is_scored,
        temperature=temperature[segment],
        advantage=advantage.astype(np.float32)[segment],
        weight=np.where(is_scored, weight[segment], 0).astype(np.float32),
        segment=segment,
        steps=steps,
    )


class BatchReader:
    """Reads micro-batches in any order, keeping the row groups that were used last.

    It is not thread-safe.
    """

    def __init__(self, index: StepIndex, *, cache_bytes: int = CACHE_BYTES) -> None:
        """Open nothing yet.

        Args:
            index: The steps.
            cache_bytes: Bound on the memory of the row groups that are kept. One that is larger
                than this is read again for each micro-batch that needs it.
        """
        self._index = index
        self._starts: dict[int, Ints] = {}
        self._cache = _Cache(cache_bytes)
        self.wait_seconds = 0.0
        """Seconds that the consumer of `ahead` has waited for data."""

    @property
    def cached_bytes(self) -> int:
        """Memory of the row groups that are kept now."""
        return self._cache.num_bytes

    def read(self, micro: MicroBatch) -> PackedBatch:
        """Return a micro-batch, its steps in the order they have there.

        Raises:
            SchemaError: A shard cannot be read any more.
        """
        return pack_samples(
            self._samples(micro.steps),
            advantage=self._index.advantage[micro.steps],
            weight=micro.weight,
            steps=micro.steps,
        )

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
                        yield self._wait(waiting.popleft())
                while waiting:
                    yield self._wait(waiting.popleft())
            finally:
                for future in waiting:
                    future.cancel()

    def _wait(self, future: Future[PackedBatch]) -> PackedBatch:
        started = time.perf_counter()
        batch = future.result()
        self.wait_seconds += time.perf_counter() - started
        return batch

    def _samples(self, steps: Ints) -> list["Sample"]:
        """Return the steps in their order, reading one row group after the other."""
        of_group: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for step in steps.tolist():
            shard = int(self._index.shard[step])
            group, row = self._place(shard, int(self._index.row[step]))
            of_group.setdefault((shard, group), []).append((step, row))
        samples: dict[int, Sample] = {}
        for (shard, group), members in of_group.items():
            tokens = self._tokens(shard, group)
            samples |= {step: _copy(tokens, row) for step, row in members}
        return [samples[step] for step in steps.tolist()]

    def _place(self, shard: int, row: int) -> tuple[int, int]:
        """Return the row group of a row, and the row within it."""
        if shard not in self._starts:
            self._starts[shard] = row_group_starts(self._index.shards[shard].path)
        starts = self._starts[shard]
        group = int(np.searchsorted(starts, row, side="right")) - 1
        return group, row - int(starts[group])

    def _tokens(self, shard: int, group: int) -> TokenColumns:
        found = self._cache.get((shard, group))
        if found is None:
            found = read_tokens(self._index.shards[shard].path, group)
            self._cache.put((shard, group), found)
        return found


def _copy(tokens: TokenColumns, row: int) -> Sample:
    """Return one step; copied, so that its row group can be let go."""
    return Sample(
        prompt=tokens.prompt[row].copy(),
        response=tokens.response[row].copy(),
        logprob=tokens.logprob[row].copy(),
        temperature=float(tokens.temperature[row]),
    )


def _distinct(samples: Sequence[Sample]) -> tuple[list[Sample], Ints]:
    """Return one sample for each prompt with its response, and which of them each sample has."""
    numbers: dict[tuple[bytes, bytes], int] = {}
    keys = [(sample.prompt.tobytes(), sample.response.tobytes()) for sample in samples]
    which = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
    first = np.unique(which, return_index=True)[1]
    return [samples[position] for position in first], which


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


def _joined(arrays: Iterable[NDArray[np.int32]]) -> Ints:
    return np.concatenate(list(arrays), dtype=np.int64)
