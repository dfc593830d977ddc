"""What a training is of, so that nothing made for another one is taken for its own."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from graphcredit.store.errors import InputError

_MODEL_FILES = ("config.json", "*.safetensors")


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """Hashes of everything that decides what is learnt."""

    plan: str
    """Of the steps, their credit, and their order."""
    configuration: str
    """Of the options that change what is learnt."""
    model: str
    """Of the weights it starts from."""
    reference: str
    """Of the reference's weights; empty where it is the model itself, or there is none."""

    def as_json(self) -> dict[str, str]:
        """Return the hashes by name."""
        return asdict(self)

    def refuse_other(self, found: Mapping[str, str], where: Path) -> None:
        """Raise InputError if something on disk is of another training."""
        for field in fields(self):
            mine, other = getattr(self, field.name), found.get(field.name, "")
            if mine != other:
                raise InputError(
                    f"{where} must be of the {field.name} that is given now ({mine[:12]}), but is "
                    f"of another ({other[:12]}): the data, the options or the model have changed. "
                    "Restore them, or train into another directory"
                )


def hash_model(directory: Path) -> str:
    """Return a hash of a model's configuration and weights."""
    paths = sorted(path for pattern in _MODEL_FILES for path in directory.glob(pattern))
    digest = hashlib.sha256()
    for path in paths:
        digest.update(f"{path.name}:{describe(path)['sha256']}\n".encode())
    return digest.hexdigest()


def describe(path: Path) -> dict[str, str | int]:
    """Return what a file is recognised by: its hash and its size."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"sha256": digest, "bytes": path.stat().st_size}
