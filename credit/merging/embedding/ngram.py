"""Texts as unit vectors, whose inner product is the cosine."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphcredit.credit.merging.nearest import Vectors
from graphcredit.credit.steps.arrays import Ints


class Embedder(Protocol):
    """Anything that makes vectors of texts."""

    def embed(self, texts: list[str]) -> Vectors:
        """Return [n, dimension] a vector of length 1 (0 where nothing is known) for each text."""
        ...


NGRAM = "ngram"


class NgramEmbedder:
    """Hashed counts of character n-grams: no weights, and the same numbers on every machine.

    Every run of 3 to 5 characters, with a space before and after the text, adds +1 or -1 to one of
    1,024 sums; a hash of the run decides which, and the sign. Two texts are as close as the runs
    that they share: it sees how much of a text changed and not what the change means.
    """

    sizes: tuple[int, ...] = (3, 4, 5)
    dimension: int = 1024
    _chunk_texts = 2048
    _chunk_characters = 1 << 20

    def embed(self, texts: list[str]) -> Vectors:
        """Return [n, dimension] the normalised sums of each text."""
        parts = [self._embed(chunk) for chunk in self._chunks(texts)]
        return np.concatenate([np.empty((0, self.dimension), np.float32), *parts])

    def _chunks(self, texts: list[str]) -> Iterator[list[str]]:
        """Yield the texts, so many at a time that they and their runs fit in some 100 MB."""
        chunk: list[str] = []
        num_characters = 0
        for text in texts:
            is_full = num_characters + len(text) > self._chunk_characters
            if chunk and (is_full or len(chunk) == self._chunk_texts):
                yield chunk
                chunk, num_characters = [], 0
            chunk.append(text)
            num_characters += len(text)
        if chunk:
            yield chunk

    def _embed(self, texts: list[str]) -> Vectors:
        padded = [f" {text} " for text in texts]
        points = "".join(padded).encode("utf-32-le", "surrogatepass")
        character = np.frombuffer(points, np.uint32).astype(np.uint64)
        row = np.repeat(np.arange(len(texts)), [len(text) for text in padded])
        sums = np.zeros(len(texts) * self.dimension)
        for size in self.sizes:
            cells, signs = self._cells(character, row, size)
            sums += np.bincount(cells, signs, len(sums))
        vectors = sums.reshape(len(texts), self.dimension)
        length = np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
        return (vectors / np.maximum(length, 1.0)).astype(np.float32)

    def _cells(self, character: NDArray[np.uint64], row: Ints, size: int) -> tuple[Ints, Ints]:
        """Return the cell that each run of `size` characters adds to, and the sign it adds."""
        count = max(len(character) - size + 1, 0)
        hashed = np.full(count, size, np.uint64)
        for offset in range(size):
            hashed = hashed * np.uint64(0x100000001B3) + character[offset : offset + count]
        hashed *= np.uint64(0x9E3779B97F4A7C15)
        hashed ^= hashed >> np.uint64(32)
        hashed *= np.uint64(0xD6E8FEB86659FD93)
        is_within = row[:count] == row[size - 1 : size - 1 + count]
        bucket = (hashed >> np.uint64(40)).astype(np.int64) % self.dimension
        sign = 1 - 2 * ((hashed >> np.uint64(39)) & np.uint64(1)).astype(np.int64)
        return (row[:count] * self.dimension + bucket)[is_within], sign[is_within]


def embed_distinct(embedder: Embedder, texts: list[str]) -> Vectors:
    """Return [n, dimension] vectors; a text that occurs twice is embedded once."""
    codes = pa.array(texts, pa.large_string()).dictionary_encode()
    vectors = embedder.embed(codes.dictionary.to_pylist())
    return vectors[codes.indices.to_numpy()]
