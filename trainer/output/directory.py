"""The output directory of a training: its files, and whether the training can resume in it.

OUT/
  config.toml      the effective configuration
  logprobs/        log-probabilities under the frozen policies, computed once
  checkpoints/     the last few states to resume from
  notices.txt      notices shown to the user
  metrics.jsonl    one line per optimizer step
  tensorboard/
  result.json      summary of the training; written when it is complete
  model/           the new policy, as `from_pretrained` loads it (adapter/ beside it for LoRA)
"""

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphcredit.store.errors import InputError
from graphcredit.store.files.atomic import atomic_path, remove_left_overs
from graphcredit.store.files.lock import LOCK_NAME, alone_in
from graphcredit.store.files.parse import parse_json
from graphcredit.trainer.config import TrainConfig, differences, read_config, without_effect

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
        """The summary; it exists once the training is complete."""
        return self.root / "result.json"

    def names(self) -> set[str]:
        """Return the names of what is written or removed whole, by way of temporary names."""
        files = (self.config_path, self.metrics_path, self.result_path)
        return {p.name for p in (*files, self.model_dir, self.checkpoint_dir, self.logprob_dir)}

    def has_begun(self) -> bool:
        """Return whether a training has begun: its configuration and first results exist."""
        began = (self.logprob_dir, self.checkpoint_dir, self.result_path)
        return self.config_path.exists() and any(path.exists() for path in began)

    def refuse_foreign(self) -> None:
        """Raise InputError if the directory holds files, and none of them is of a training."""
        if not self.config_path.exists() and any(_foreign(self.root)):
            raise InputError(
                f"{self.root} must be a new or empty directory, or the output of this training: "
                "it has no config.toml but holds other files. Name another --out."
            )

    def notices(self) -> list[str]:
        """Return the notices of all starts of this training."""
        path = self.root / _NOTICES
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def keep_notice(self, text: str) -> None:
        """Record a notice, unless it is recorded already."""
        line = " ".join(text.split())
        if line in self.notices():
            return
        with (self.root / _NOTICES).open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def result(self) -> dict[str, Any] | None:
        """Return the summary, or None before the training is complete."""
        if not self.result_path.exists():
            return None
        return parse_json(self.result_path.read_text(encoding="utf-8"))

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Write the summary, which marks the training as complete."""
        with atomic_path(self.result_path) as temporary:
            temporary.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def effective_config(config: TrainConfig) -> TrainConfig:
    """Return the configuration with the run and the iteration that the output was started with.

    So the same command resumes the same iteration, even if newer ones were recorded since.
    """
    output = Output(config.out)
    if not output.has_begun() or None not in (config.run, config.iteration):
        return config
    saved = read_config(output.config_path, {})
    return config.changed(
        run=saved.run if config.run is None else config.run,
        iteration=saved.iteration if config.iteration is None else config.iteration,
    )


@contextmanager
def open_output(config: TrainConfig, *, is_first_rank: bool = True) -> Generator[Output]:
    """Open the output of a training; create it in a new or empty directory.

    The first rank locks the directory until the context ends, then removes temporary files of a
    killed training. Only the first rank checks for foreign files, since other ranks may look
    while it writes the first ones.

    Raises:
        InputError: The directory holds other files or a training with other options, or another
            process trains into it.
    """
    output = Output(config.out)
    if is_first_rank:
        output.refuse_foreign()
    with _alone(output) if is_first_rank else nullcontext():
        if output.has_begun():
            _refuse_another(config, output.config_path)
        elif is_first_rank:
            # Notices of failed starts do not belong to this training.
            (output.root / _NOTICES).unlink(missing_ok=True)
        if is_first_rank:
            with atomic_path(output.config_path) as temporary:
                temporary.write_text(config.as_toml(), encoding="utf-8")
        yield output


@contextmanager
def _alone(output: Output) -> Generator[None]:
    """Lock an output, and remove the temporary files of a killed training."""
    refusal = (
        f"{output.root} must have one training at a time, but another process trains into it: "
        "wait for it, or name another --out"
    )
    with alone_in(output.root, refusal):
        remove_left_overs(output.root, output.names().__contains__)
        remove_left_overs(output.checkpoint_dir, bool)
        yield


def _foreign(out: Path) -> list[Path]:
    """Return the files that do not belong to a training."""
    if not out.is_dir():
        return [out] if out.exists() else []
    ours = ("config.toml.", LOCK_NAME)
    return [path for path in out.iterdir() if not path.name.startswith(ours)]


def _refuse_another(config: TrainConfig, path: Path) -> None:
    saved = read_config(path, {})
    changed = differences(without_effect(config), without_effect(saved))
    if changed:
        raise InputError(
            f"{path} is of a training that was configured otherwise ({'; '.join(changed)}): give "
            "the same options to go on with it, or name another --out"
        )
