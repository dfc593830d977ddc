"""Find a model's files, and compute digests of its weights and its tokenizer."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

from graphcredit.store.errors import InputError, OptionError

_WEIGHTS = ("config.json", "*.safetensors", "*.bin")
_WORDS = (
    "*token*.json",
    "*.model",
    "vocab.*",
    "merges.txt",
    "chat_template.*",
    "chat_templates/*",
    "generation_config.json",
)
"""Files that determine the tokens of a prompt, and the tokens that end an answer."""

_NUM_BLOCKS, _BLOCK_BYTES = 256, 1 << 16
"""Number and size of the blocks to read of a large file: for a model of 7 billion weights in four
files, that is 64 MiB."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelFiles:
    """A model's directory, its version and its stamp."""

    path: str
    version: str
    """Name of the directory; of its parent if it is called `model`, as in the trainer's output."""
    stamp: str
    """A digest of names, sizes and times of its files; it changes if they are written again."""


def find_model(name: str) -> ModelFiles:
    """Return the files of a directory, or of a name in the local Hugging Face cache.

    Raises:
        OptionError: There is no such model on this machine.
    """
    is_directory = os.path.isdir(name)
    # Links are not resolved: the link's own name is the version.
    called = Path(os.path.abspath(name)) if is_directory else Path(name)
    directory = called if is_directory else _from_cache(name)
    if not (directory / "config.json").is_file():
        raise OptionError(f"a model's directory must have a config.json: {directory} has none")
    version = called.parent.name if called.name == "model" else called.name
    return ModelFiles(path=str(directory), version=version, stamp=_stamp(directory))


def require_safetensors(directory: str) -> None:
    """Raise InputError for a model's directory without safetensors: nothing else is loaded."""
    if not any(Path(directory).glob("*.safetensors")):
        raise InputError(
            f"a model's directory must hold its weights as *.safetensors, but {directory} has "
            "none: other formats can run code when they are read. If you trust the model, load it "
            "with transformers and convert it by save_pretrained()"
        )


def digest_weights(model: ModelFiles) -> str:
    """Return a digest of a model's configuration and weights, independent of place and time.

    For each file it covers the name, the size and 256 blocks of 64 KiB at equal distances, the
    first and the last bytes among them. That is all of a file up to 16 MiB. In a larger file, it is
    a part of every tensor that is at least as long as the distance.
    """
    return _digest(Path(model.path), _WEIGHTS)


def digest_words(model: ModelFiles) -> str:
    """Return the same kind of digest of a model's tokenizer, chat template and end tokens."""
    return _digest(Path(model.path), _WORDS)


def notes_of(model: ModelFiles) -> tuple[str, ...]:
    """Return a note if a model has no chat template, as base models have none."""
    directory, form = Path(model.path), Path(model.path) / "tokenizer_config.json"
    if any(directory.glob("chat_template*")):
        return ()
    if form.is_file() and json.loads(form.read_text(encoding="utf-8")).get("chat_template"):
        return ()
    return (
        "the model has no chat template: prompts are plain texts, joined by line breaks. A model "
        "that was taught a chat's form needs its chat_template.jinja in its folder",
    )


def _digest(directory: Path, patterns: Sequence[str]) -> str:
    digest = blake2b(digest_size=8)
    for path in sorted({path for pattern in patterns for path in directory.glob(pattern)}):
        size = path.stat().st_size
        digest.update(f"{path.name} {size}\n".encode())
        with path.open("rb") as file:
            for block in _blocks(file, size):
                digest.update(block)
    return digest.hexdigest()


def _blocks(file: BinaryIO, size: int) -> Iterator[bytes]:
    last = max(size - _BLOCK_BYTES, 0)
    apart = max(_BLOCK_BYTES, -(-last // (_NUM_BLOCKS - 1)))
    for start in (*range(0, last, apart), last):
        file.seek(start)
        yield file.read(_BLOCK_BYTES)


def _from_cache(name: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (OSError, ValueError):
        raise OptionError(
            "a model must be a directory, or a name in the local Hugging Face cache (nothing is "
            f"downloaded): got {name!r}"
        ) from None


def _stamp(directory: Path) -> str:
    digest = blake2b(digest_size=8)
    for path in sorted(path for path in directory.iterdir() if path.is_file()):
        about = path.stat()
        digest.update(f"{path.name} {about.st_size} {about.st_mtime_ns}\n".encode())
    return digest.hexdigest()
