"""The fingerprint of a training: files of another training are never reused for this one."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from graphcredit.store.errors import InputError

_MODEL_FILES = ("config.json", "*.safetensors", "*processor_config.json")


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """The fingerprint of a training: a hash of each input that determines its weights."""

    plan: str
    """Hash of the steps, their credit, and their order."""
    configuration: str
    """Hash of the options that change the resulting weights."""
    model: str
    """Hash of the model's weights at the start."""
    reference: str
    """Hash of the reference's weights; empty if the model itself is the reference, or without
    one."""
    arithmetic: str
    """float32 or bfloat16; not a hash. With dtype auto it depends on the device."""

    def as_json(self) -> dict[str, str]:
        """Return the fields by name."""
        return asdict(self)

    def refuse_other(self, saved: Mapping[str, str], where: Path) -> None:
        """Raise InputError if a file on disk belongs to another training."""
        for name, (mine, other) in self._differences(saved).items():
            raise InputError(
                f"{where} must be of the {name} that is given now ({mine[:12]}), but is of another "
                f"({other[:12]}): the data, the options, the model or the device have changed. "
                "Restore them, or train into another directory"
            )

    def is_of(self, saved: Mapping[str, str]) -> bool:
        """Return whether a file on disk belongs to this training."""
        return not self._differences(saved)

    def _differences(self, saved: Mapping[str, str]) -> dict[str, tuple[str, str]]:
        pairs = {name: (mine, saved.get(name, "")) for name, mine in self.as_json().items()}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def hash_model(directory: Path) -> str:
    """Return a hash of a model's configuration and weights, and of how it reads images."""
    paths = sorted(path for pattern in _MODEL_FILES for path in directory.glob(pattern))
    digest = hashlib.sha256()
    for path in paths:
        digest.update(f"{path.name}:{describe(path)['sha256']}\n".encode())
    return digest.hexdigest()


def describe(path: Path) -> dict[str, str | int]:
    """Return the hash and the size of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"sha256": digest, "bytes": path.stat().st_size}
