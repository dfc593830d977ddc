"""Sentence-transformers models that are on this machine; nothing is ever fetched."""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from graphcredit.credit.merging.embedding.ngram import NGRAM
from graphcredit.credit.merging.nearest import Vectors
from graphcredit.store.errors import MissingDependencyError, library_errors
from graphcredit.store.extras import how_to_install

_E5 = re.compile(r"(?:^|[/_-])e5(?:[_-]|$)", re.IGNORECASE)


class ModelEmbedder:
    """A sentence-transformers model, loaded when the first text needs it.

    The E5 family was trained with a word before each text and is given `query: `, as its authors
    say for comparing texts with each other; MiniLM and others take the text as it is.
    """

    def __init__(self, name: str) -> None:
        """Name a model.

        Args:
            name: Its name, as it was fetched earlier, or the path of its directory.
        """
        self.name = name
        self.prefix = "query: " if _E5.search(name.rstrip("/")) else ""
        self._model: Any = None

    def __getstate__(self) -> dict[str, Any]:
        # Another process loads the model itself: weights are not sent with every batch of work.
        return self.__dict__ | {"_model": None}

    @property
    def identity(self) -> str:
        """What the vectors depend on, in one line: name, prefix, and a local model's files."""
        files = hashlib.sha256("\n".join(_files(Path(self.name))).encode()).hexdigest()[:16]
        return f"{self.name} {self.prefix!r} {files}"

    def load(self) -> None:
        """Load the model, if it is not loaded yet.

        Raises:
            MissingDependencyError: sentence-transformers is not installed.
            InputError: The model is not on this machine.
        """
        self._model = self._model or _load(self.name)

    def embed(self, texts: list[str]) -> Vectors:
        """Return [n, dimension] the model's vector of each text, of length 1.

        Raises:
            MissingDependencyError: sentence-transformers is not installed.
            InputError: The model is not on this machine.
        """
        self.load()
        prefixed = [self.prefix + text for text in texts]
        vectors = self._model.encode(
            prefixed, normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
        )
        return np.asarray(vectors, np.float32)


def _load(name: str) -> Any:
    try:
        from sentence_transformers import SentenceTransformer  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingDependencyError(
            f"the embedder {name!r} needs sentence-transformers: "
            f"{how_to_install('embed')}, or use --embedder {NGRAM}"
        ) from error
    rule = (
        f"the embedder must be {NGRAM}, or a sentence-transformers model in safetensors that is on "
        f"this machine, because nothing is fetched: {name!r}"
    )
    with library_errors(rule):
        return SentenceTransformer(
            name,
            device="cpu",
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True},
        )


def _files(directory: Path) -> Iterable[str]:
    for path in sorted(directory.rglob("*")) if directory.is_dir() else ():
        if path.is_file():
            status = path.stat()
            yield f"{path.relative_to(directory)} {status.st_size} {status.st_mtime_ns}"
