"""The configuration of a training: read, checked, saved, and compared with a saved one."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import model_validator

from graphcredit.store.errors import OptionError
from graphcredit.store.options import read_toml
from graphcredit.trainer.options import (
    DEFAULT_OBJECTIVE,
    DEFAULTS_OF_SFT,
    SFT,
    BatchOptions,
    DataOptions,
    JobOptions,
    LossOptions,
    ModelOptions,
    OptimizerOptions,
    RunOptions,
)


class TrainConfig(
    RunOptions, ModelOptions, OptimizerOptions, LossOptions, BatchOptions, DataOptions, JobOptions
):
    """All options of a training. The order of the bases is the order of the options, from the end.

    A configuration is saved and hashed in that order: a change of it would refuse to resume.
    """

    @model_validator(mode="before")
    @classmethod
    def _of_objective(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Give an objective its own defaults."""
        return {**DEFAULTS_OF_SFT, **values} if values.get("objective") == SFT else values

    @model_validator(mode="after")
    def _agree(self) -> Self:
        """Refuse options that contradict each other."""
        if self.correction_low > self.correction_high:
            raise OptionError(
                "correction_low must not exceed correction_high: got "
                f"{self.correction_low:g} and {self.correction_high:g}"
            )
        if self.reference is not None and self.kl_coefficient == 0:
            raise OptionError(
                f"a reference ({self.reference}) is used only with kl_coefficient above 0: found 0"
            )
        if self.min_learning_rate > self.learning_rate:
            raise OptionError(
                "min_learning_rate must not exceed learning_rate: got "
                f"{self.min_learning_rate:g} and {self.learning_rate:g}"
            )
        return self

    def resolved(self) -> "TrainConfig":
        """Return the configuration with absolute paths.

        Symbolic links are not resolved: the fingerprint has the hash of the model behind them.
        """
        name, before, template = self.reference, self.continue_from, self.chat_template
        return self.changed(
            store=tuple(Path(os.path.abspath(store)) for store in self.store),
            out=Path(os.path.abspath(self.out)),
            model=_absolute(self.model),
            chat_template=None if template is None else Path(os.path.abspath(template)),
            reference=None if name is None else _absolute(name),
            continue_from=None if before is None else Path(os.path.abspath(before)),
        )

    @property
    def adapter_seed(self) -> str:
        """Seed of new LoRA adapters.

        It differs between iterations, so that a chain of trainings is not held to one row space.
        """
        return f"{self.seed}/{self.iteration or 0}"

    @property
    def drops_zero_advantage(self) -> bool:
        """Whether steps with advantage 0 are left out: where nothing is learnt from them."""
        if self.objective == SFT:
            return True
        if self.aggregation in ("trajectory-mean", "group-mean"):
            # All steps of a trajectory share its weight: the remaining ones would get too much.
            return False
        return self.kl_coefficient == 0 and self.entropy_coefficient == 0

    def as_json(self) -> dict[str, Any]:
        """Return every option as a JSON value."""
        stores = [str(store) for store in self.store]
        values = {k: str(v) if isinstance(v, Path) else v for k, v in self}
        return {**values, "store": stores if len(stores) > 1 else stores[0]}

    def as_toml(self) -> str:
        """Return the configuration as TOML for `read_config`; options that are None are left out.

        Raises:
            OptionError: The name of a file is not text.
        """
        return _as_toml(self.as_json())

    def decisive_text(self) -> str:
        """Return the options that change the resulting weights, as text for the fingerprint."""
        return _as_toml(without_effect(self).as_json())


def read_config(path: Path | None, given: Mapping[str, Any]) -> TrainConfig:
    """Return the configuration of a TOML file, overridden by the given options.

    Args:
        path: The file, if there is one.
        given: Option to its value, which overrides the file's. Options of the objective are
            overridden one by one; the file's are ignored if another objective is given.

    Raises:
        OptionError: The file cannot be read, a name is unknown, or a needed one is missing.
    """
    read = read_toml(path) if path else {}
    values = _merged(read, given)
    missing = [name for name in ("store", "out", "model") if name not in values]
    if missing:
        raise OptionError(f"train must be told {missing[0]!r}: on the command line or in the file")
    return TrainConfig(**values)


def _as_toml(options: Mapping[str, Any]) -> str:
    values = {k: v for k, v in options.items() if v is not None}
    of_objective = values.pop("objective_options")
    lines = [f"{name} = {_toml(value)}" for name, value in values.items()]
    table = [f"{name} = {_toml(value)}" for name, value in of_objective.items()]
    return "\n".join([*lines, "", "[objective_options]", *table]) + "\n"


def _merged(read: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    values = {**read, **given}
    name, added = "objective_options", given.get("objective_options", {})
    if values.get("objective", DEFAULT_OBJECTIVE) != read.get("objective", DEFAULT_OBJECTIVE):
        return {**values, name: added}
    if isinstance(read.get(name), Mapping) and isinstance(added, Mapping):
        values[name] = {**read[name], **added}
    return values


def differences(config: TrainConfig, other: TrainConfig) -> list[str]:
    """Return a text for each option that differs between two configurations."""
    saved = dict(other)
    return [
        f"{name} is {asked!r}, was {saved[name]!r}"
        for name, asked in config
        if asked != saved[name]
    ]


def without_effect(config: TrainConfig) -> TrainConfig:
    """Return a configuration with the options reset that do not change the resulting weights.

    The device changes them where dtype is auto: `Identity.arithmetic` holds the dtype.
    """
    return config.changed(
        store=Path(),
        out=Path(),
        device="auto",
        # What is computed again is the same to the bit.
        gradient_checkpointing=False,
        checkpoint_every=1,
        mismatch_tolerance=1.0,
    )


def _absolute(name: str) -> str:
    """Return the absolute path of a directory; a name in the cache is returned unchanged."""
    return os.path.abspath(name) if Path(name).is_dir() else name


def _toml(value: Any) -> str:
    """Return a value as TOML text.

    It differs from JSON in two things: characters beyond U+FFFF are not written as pairs of
    surrogates, and DEL is escaped.
    """
    text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise OptionError(
            f"options must be text in UTF-8, so that config.toml can keep them: got {value!a}. "
            "Rename the file"
        ) from None
    return text
