"""Where a model's files are, and which weights they are."""

import os
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from graphcredit.store.errors import OptionError


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelFiles:
    """A model's directory, and what it holds."""

    path: str
    """The directory."""
    version: str
    """Its name, or that of the directory above if it is called `model`, as the trainer's is."""
    stamp: str
    """A digest of names, sizes and times of its files: another one when they are written anew."""


def find_model(name: str) -> ModelFiles:
    """Return the files of a directory, or of a name in the local Hugging Face cache.

    Raises:
        OptionError: There is no such model on this machine.
    """
    is_directory = os.path.isdir(name)
    # Not resolved: a link says what its target is called here.
    called = Path(os.path.abspath(name)) if is_directory else Path(name)
    directory = called if is_directory else _from_cache(name)
    if not (directory / "config.json").is_file():
        raise OptionError(f"a model's directory must have a config.json: {directory} has none")
    version = called.parent.name if called.name == "model" else called.name
    return ModelFiles(path=str(directory), version=version, stamp=_stamp(directory))


def _from_cache(name: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (OSError, ValueError):
        raise OptionError(
            "a model must be a directory, or a name in the local Hugging Face cache, because "
            f"nothing is downloaded here: got {name!r}"
        ) from None


def _stamp(directory: Path) -> str:
    digest = blake2b(digest_size=8)
    for path in sorted(path for path in directory.iterdir() if path.is_file()):
        about = path.stat()
        digest.update(f"{path.name} {about.st_size} {about.st_mtime_ns}\n".encode())
    return digest.hexdigest()
