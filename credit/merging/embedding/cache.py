"""Vectors that were computed before, kept in the store by model and text.

`embeddings/<model>/` holds Parquet files of `text_hash, vector`, a few thousand texts each. A file
appears when it is complete, so an interrupted run goes on where it stopped. Deleting the directory
costs time and nothing else.
"""

import hashlib
import re
import secrets
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from graphcredit.credit.merging.embedding.ngram import Embedder
from graphcredit.credit.merging.nearest import Vectors
from graphcredit.store.files.atomic import remove_left_overs
from graphcredit.store.files.tables import write_table
from graphcredit.store.layout import Store
from graphcredit.store.parquet.shards import open_parquet

_CHUNK = 4096
_HASH = pa.binary(16)
_SHARD = re.compile(r"[0-9a-f]{16}\.parquet")


class NamedEmbedder(Embedder, Protocol):
    """An embedder whose vectors can be told from those of another."""

    @property
    def identity(self) -> str:
        """All that the vectors depend on besides the text."""
        ...


class CachedEmbedder:
    """Asks an embedder only for texts that it has not seen in this store."""

    def __init__(self, store: Store, embedder: NamedEmbedder) -> None:
        self._embedder = embedder
        self._directory = store.root / "embeddings" / _directory_name(embedder.identity)
        self._row_of_hash: dict[bytes, tuple[Path, int]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Another process looks itself at what is there by then.
        return self.__dict__ | {"_row_of_hash": None}

    def embed(self, texts: list[str]) -> Vectors:
        """Return [n, dimension] the vector of each text."""
        keys = [_hash(text) for text in texts]
        known = self._index()
        missing = [position for position, key in enumerate(keys) if key not in known]
        for start in range(0, len(missing), _CHUNK):
            chunk = missing[start : start + _CHUNK]
            self._keep([keys[i] for i in chunk], self._embedder.embed([texts[i] for i in chunk]))
        return self._read(keys)

    def _index(self) -> dict[bytes, tuple[Path, int]]:
        if self._row_of_hash is None:
            self._row_of_hash = {}
            for path in sorted(self._directory.glob("*.parquet")):
                with open_parquet(path) as file:
                    hashes: list[bytes] = file.read(columns=["text_hash"])["text_hash"].to_pylist()
                self._row_of_hash |= {key: (path, row) for row, key in enumerate(hashes)}
        return self._row_of_hash

    def _keep(self, keys: list[bytes], vectors: Vectors) -> None:
        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
        table = pa.table({"text_hash": pa.array(keys, _HASH), "vector": column})
        path = self._directory / f"{secrets.token_hex(8)}.parquet"
        remove_left_overs(self._directory, _SHARD.fullmatch)
        write_table(table, path)
        self._index().update({key: (path, row) for row, key in enumerate(keys)})

    def _read(self, keys: list[bytes]) -> Vectors:
        index = self._index()
        places: dict[Path, list[tuple[int, int]]] = {}
        for position, key in enumerate(keys):
            path, row = index[key]
            places.setdefault(path, []).append((position, row))
        vectors = np.empty((0, 0), np.float32)
        for path, pairs in places.items():
            stored = _vectors(path)
            if not len(vectors):
                vectors = np.empty((len(keys), stored.shape[1]), np.float32)
            positions, rows = np.array(pairs).T
            vectors[positions] = stored[rows]
        return vectors


def _vectors(path: Path) -> Vectors:
    with open_parquet(path) as file:
        column = file.read(columns=["vector"])["vector"].combine_chunks()
    flat: Vectors = column.flatten().to_numpy().astype(np.float32)
    return flat.reshape(len(column), -1)


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _directory_name(identity: str) -> str:
    readable = re.sub(r"[^A-Za-z0-9]+", "-", identity.split(" ")[0]).strip("-")[-48:]
    return f"{readable}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
