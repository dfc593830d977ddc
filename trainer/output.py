"""The directory a training writes to: what is in it, and whether it may be gone on with.

OUT/
  config.toml      the effective configuration
  logprobs/        log-probabilities under the frozen policies, computed once
  checkpoints/     the last few states to go on from
  metrics.jsonl    one line per optimizer step
  tensorboard/
  result.json      what was trained on, what was left out; written last: the training is done
  model/           the new policy, as `from_pretrained` loads it (adapter/ beside it for LoRA)
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphcredit.store.atomic import atomic_path
from graphcredit.store.errors import InputError
from graphcredit.store.layout import is_name
from graphcredit.trainer.config import TrainConfig, differences, read_config, without_effect


@dataclass(frozen=True, slots=True)
class Output:
    """The paths of one training's output. Get one from `open_output`."""

    root: Path

    @property
    def config_path(self) -> Path:
        """The effective configuration."""
        return self.root / "config.toml"

    @property
    def checkpoint_dir(self) -> Path:
        """The checkpoints."""
        return self.root / "checkpoints"

    @property
    def logprob_dir(self) -> Path:
        """Log-probabilities under the frozen policies."""
        return self.root / "logprobs"

    @property
    def metrics_path(self) -> Path:
        """One JSON object per optimizer step."""
        return self.root / "metrics.jsonl"

    @property
    def model_dir(self) -> Path:
        """The new policy."""
        return self.root / "model"

    @property
    def result_path(self) -> Path:
        """What the training came to; there once it is done."""
        return self.root / "result.json"

    def has_begun(self) -> bool:
        """Return whether there is anything of a training that only its configuration explains."""
        began = (self.logprob_dir, self.checkpoint_dir, self.result_path)
        return self.config_path.exists() and any(path.exists() for path in began)

    def result(self) -> dict[str, Any] | None:
        """Return what the training came to, or None while it is not done."""
        if not self.result_path.exists():
            return None
        return json.loads(self.result_path.read_text(encoding="utf-8"))

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Say that the training is done."""
        with atomic_path(self.result_path) as temporary:
            temporary.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def open_output(config: TrainConfig, *, is_first_rank: bool = True) -> Output:
    """Open the output of a training, or begin one in a new or empty directory.

    Args:
        config: What is to be trained.
        is_first_rank: Whether this process may write.

    Raises:
        InputError: The directory holds other files, or a training that was configured otherwise.
    """
    output = Output(config.out)
    if not is_name(config.out.name):
        raise InputError(
            "the name of --out becomes a file name in the store, so it must be letters, digits, "
            f"'.', '_' and '-': got {config.out.name!r}"
        )
    if output.has_begun():
        _refuse_another(config, output.config_path)
        return output
    if config.out.exists() and (not config.out.is_dir() or any(_foreign(config.out))):
        raise InputError(
            f"{config.out} must be a new or empty directory, or the output of this training: it "
            "has no config.toml but holds other files. Name another --out."
        )
    if is_first_rank:
        with atomic_path(output.config_path) as temporary:
            temporary.write_text(config.as_toml(), encoding="utf-8")
    return output


def _foreign(directory: Path) -> list[Path]:
    return [path for path in directory.iterdir() if not path.name.startswith("config.toml")]


def _refuse_another(config: TrainConfig, path: Path) -> None:
    found = read_config(path, {})
    changed = differences(without_effect(config), without_effect(found))
    if changed:
        raise InputError(
            f"{path} is of a training that was configured otherwise ({'; '.join(changed)}): give "
            "the same options to go on with it, or name another --out"
        )
