"""Find the tokenizer of a log's model on this machine, and turn token ids into text.

Only a `tokenizer.json` is read: it is data, not code. The network is never asked.
"""

import os
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from graphcredit.store.errors import InputError
from graphcredit.store.files.parse import parse_object
from graphcredit.store.layout import Store, is_name
from graphcredit.viewer.config import TOKENIZER_VARIABLE

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_FILE = "tokenizer.json"
_REPOSITORY = re.compile(r"(?:([A-Za-z0-9][\w.-]*)/)?([A-Za-z0-9][\w.-]*)")
_PARTIAL = "\N{REPLACEMENT CHARACTER}"


def find_tokenizer(store: Store, names: Sequence[str | None]) -> Path | None:
    """Return the file of a tokenizer.

    The viewer's own option counts first; then the policies of a loop, which lie beside its store;
    then the local cache of Hugging Face.

    Args:
        store: The store.
        names: What the log says of the model: the version of the policy, the model's name.
    """
    named = os.environ.get(TOKENIZER_VARIABLE)
    if named:
        return _file_in(Path(named))
    known = [name for name in names if name]
    policies = store.root.parent / "policies"
    folders = [
        policies / name / inner for name in known if is_name(name) for inner in ("model", "")
    ]
    folders += [folder for name in known for folder in _in_cache(name)]
    return next((path for folder in folders if (path := _file_in(folder)) is not None), None)


def model_of(extra: str | None) -> str | None:
    """Return the name of the model that an imported log states in `extra` of its first step."""
    log = parse_object(extra).get("log")
    model = log.get("model") if isinstance(log, dict) else None
    return model if isinstance(model, str) else None


def read_tokenizer(path: Path) -> "Tokenizer":
    """Return a tokenizer, which is kept while its file stays the same.

    Raises:
        InputError: The file is no tokenizer.
        ImportError: The library is not installed.
    """
    return _read(path, path.stat().st_mtime_ns)


def token_texts(tokenizer: "Tokenizer", ids: Sequence[int]) -> list[str]:
    """Return the text that each token adds; empty for one that only begins a character.

    Raises:
        InputError: An id is not in the vocabulary.
    """
    size = tokenizer.get_vocab_size(with_added_tokens=True)
    if any(not 0 <= token < size for token in ids):
        raise InputError(
            f"every token id must be below the tokenizer's {size}: found {max(ids)}. It is the "
            "tokenizer of another model"
        )
    texts: list[str] = []
    # A token's text depends on the one before it; a character may take several tokens.
    start, done = 0, 0
    for end in range(1, len(ids) + 1):
        before = _decode(tokenizer, ids[start:done])
        after = _decode(tokenizer, ids[start:end])
        if after.endswith(_PARTIAL) and end < len(ids) and end - done < 8:
            texts.append("")
            continue
        texts.append(after[len(before) :])
        start, done = done, end
    return texts


def _decode(tokenizer: "Tokenizer", ids: Sequence[int]) -> str:
    return tokenizer.decode(list(ids), skip_special_tokens=False)


@lru_cache(maxsize=4)
def _read(path: Path, _modified: int) -> "Tokenizer":
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain exceptions
        raise InputError(f"{path} must be a tokenizer: {error}") from error


def _file_in(place: Path) -> Path | None:
    path = place if place.name == _FILE else place / _FILE
    return path if path.is_file() else None


def _in_cache(name: str) -> list[Path]:
    """Return the folders of a model in the cache; without its owner's name if only one fits."""
    match = _REPOSITORY.fullmatch(name)
    if match is None:
        return []
    home = os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface"
    cache = Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub")
    models = list(cache.glob(f"models--{match[1] or '*'}--{match[2]}"))
    return sorted(models[0].glob("snapshots/*")) if len(models) == 1 else []
