"""The directory a training writes to: what is in it, and whether it may be gone on with.

OUT/
  config.toml      the effective configuration
  logprobs/        log-probabilities under the frozen policies, computed once
  checkpoints/     the last few states to go on from
  notices.txt      what the user was told on the way
  metrics.jsonl    one line per optimizer step
  tensorboard/
  result.json      what was trained on, what was left out; written last: the training is done
  model/           the new policy, as `from_pretrained` loads it (adapter/ beside it for LoRA)
"""

import json
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graphcredit.store.errors import InputError
from graphcredit.store.files.atomic import TEMPORARY_SUFFIX, atomic_path
from graphcredit.store.files.lock import LOCK_NAME, alone_in
from graphcredit.trainer.config import TrainConfig, differences, read_config, without_effect
from graphcredit.trainer.config_words import FIRST_VERSION

_NOTICES = "notices.txt"


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

    def notices(self) -> list[str]:
        """Return what the user was told on the way, at every start since the training has begun."""
        path = self.root / _NOTICES
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def keep_notice(self, text: str) -> None:
        """Write down what the user is told, once."""
        line = " ".join(text.split())
        if line in self.notices():
            return
        with (self.root / _NOTICES).open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def result(self) -> dict[str, Any] | None:
        """Return what the training came to, or None while it is not done."""
        if not self.result_path.exists():
            return None
        return json.loads(self.result_path.read_text(encoding="utf-8"))

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Say that the training is done."""
        with atomic_path(self.result_path) as temporary:
            temporary.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def effective_config(config: TrainConfig) -> TrainConfig:
    """Return the configuration with the run and the iteration that its output was begun with.

    So the same command goes on with the same iteration, whatever was recorded meanwhile.
    """
    output = Output(config.out)
    if not output.has_begun() or None not in (config.run, config.iteration):
        return config
    found = _saved_config(output.config_path)
    return replace(
        config,
        run=found.run if config.run is None else config.run,
        iteration=found.iteration if config.iteration is None else config.iteration,
    )


@contextmanager
def open_output(config: TrainConfig, *, is_first_rank: bool = True) -> Generator[Output]:
    """Open the output of a training, or begin one in a new or empty directory.

    The first rank is the only process that trains into it until the context ends, and writes
    nothing before it knows that it is; what a killed training left half written is swept. Whether
    the directory is fit to begin in is its judgement alone: others may look while it begins.

    Args:
        config: What is to be trained.
        is_first_rank: Whether this process may write.

    Raises:
        InputError: The directory holds other files, a training that was configured otherwise, or
            another process trains into it.
    """
    output = Output(config.out)
    if is_first_rank and not output.config_path.exists() and any(_foreign(config.out)):
        raise InputError(
            f"{config.out} must be a new or empty directory, or the output of this training: it "
            "has no config.toml but holds other files. Name another --out."
        )
    with _alone(output) if is_first_rank else nullcontext():
        if output.has_begun():
            _refuse_another(config, output.config_path)
        elif is_first_rank:
            # What was told of starts that came to nothing is not of this training.
            (output.root / _NOTICES).unlink(missing_ok=True)
        if is_first_rank:
            with atomic_path(output.config_path) as temporary:
                temporary.write_text(config.as_toml(), encoding="utf-8")
        yield output


@contextmanager
def _alone(output: Output) -> Generator[None]:
    """Be the only process that trains into an output; sweep what a killed one left there."""
    refusal = (
        f"{output.root} must have one training at a time, but another process trains into it: "
        "wait for it, or name another --out"
    )
    with alone_in(output.root, refusal):
        for left_over in output.root.glob(f"*{TEMPORARY_SUFFIX}"):
            if left_over.is_dir():
                shutil.rmtree(left_over)
            else:
                left_over.unlink()
        yield


def _foreign(out: Path) -> list[Path]:
    """Return what stands in the way of a new training."""
    if not out.is_dir():
        return [out] if out.exists() else []
    return [path for path in out.iterdir() if not path.name.startswith(("config.toml.", LOCK_NAME))]


def _saved_config(path: Path) -> TrainConfig:
    return read_config(path, {}, version=FIRST_VERSION)


def _refuse_another(config: TrainConfig, path: Path) -> None:
    found = _saved_config(path)
    changed = differences(without_effect(config), without_effect(found))
    if changed:
        raise InputError(
            f"{path} is of a training that was configured otherwise ({'; '.join(changed)}): give "
            "the same options to go on with it, or name another --out"
        )
