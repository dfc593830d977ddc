"""The configuration of a loop: a TOML file with a table for each stage."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from graphcredit.collector.options import CollectOptions, GameOptions, LanguageOptions, PlayOptions
from graphcredit.collector.policies.registry import LOCAL_SERVER
from graphcredit.credit.options import RECOMMENDED, CreditOptions
from graphcredit.store.errors import OptionError
from graphcredit.store.files.parse import parse_toml
from graphcredit.store.layout import LOGGED_STATE
from graphcredit.store.options import (
    AtLeastOne,
    Count,
    Options,
    PathOption,
    Positive,
    Texts,
    read_toml,
)


class CollectTable(LanguageOptions, PlayOptions, GameOptions):
    """`[collect]`: the games and the play, as the flags of `graphcredit collect`."""

    env: str = "textworld"
    """The environment: textworld, search, sokoban, alfworld."""
    engine: Literal["hf", "vllm", "vllm-server"] = "hf"
    """What samples: transformers, vLLM, or a vLLM server that is running."""
    server: str = LOCAL_SERVER
    """URL of the vLLM server that samples for vllm-server."""
    temperature: Positive = 1.0
    """Sampling temperature."""
    workers: Count = 0
    """Processes that step environments; the model is in the loop's own. 0 starts none."""

    def policy(self, directory: object) -> str:
        """Return the policy of a model's directory, as `graphcredit collect` names it."""
        at = f"@{self.server}" if self.engine == "vllm-server" else ""
        return f"{self.engine}:{directory}{at}"

    def options(self, **changes: Any) -> CollectOptions:
        """Return the options of a collection that plays like this.

        Args:
            changes: `policy`, `run` and `iteration`, and what differs from the table.
        """
        shared = {name: value for name, value in self if name in CollectOptions.model_fields}
        return CollectOptions(**(shared | changes))


class CreditTable(CreditOptions):
    """`[credit]`: how credit is assigned, as the flags of `graphcredit credit` say it."""

    estimators: Texts = (RECOMMENDED,)
    """Names of estimators; the first is trained on, unless [train] says otherwise."""
    state: str = LOGGED_STATE
    """Only logged: a loop writes no other states."""

    @field_validator("state")
    @classmethod
    def _is_logged(cls, state: str) -> str:
        if state != LOGGED_STATE:
            raise OptionError(f"credit.state must be {LOGGED_STATE} in a loop: got {state!r}")
        return state


class EvaluateTable(Options):
    """`[evaluate]`: how well the policy plays now and then; nothing is learnt from it."""

    owner: ClassVar[str] = "evaluate"

    every: AtLeastOne = 5
    """Iterations between evaluations; the last policy is too."""
    games: str | None = None
    """Held-out games; those of [collect] if not given."""
    tasks: Count = 16
    """Held-out tasks; 0 for none."""
    seed: Count = 1000
    """Decides actions, and held-out games whose names leave them open."""
    on_training_games: bool = True
    """Play the training's tasks too."""
    greedy: bool = True
    """Play each task once, always the most probable token."""
    samples: Count = 4
    """Rollouts of each task at temperature 1; 0 for none."""


class LoopConfig(Options):
    """A loop."""

    owner: ClassVar[str] = "loop"

    out: PathOption
    """Where store, policies and loop.jsonl go."""
    model: PathOption
    """Directory of the model to begin with."""
    iterations: AtLeastOne
    """How often every task is played and learnt from."""
    run: str = "r0"
    """The run to record; evaluations go to RUN-greedy and RUN-sampled."""
    update_every: Literal["iteration", "group"] | AtLeastOne = "iteration"
    """Train when all tasks are played, after each (post-step), or after so many (a number)."""
    collect: CollectTable = Field(default_factory=CollectTable)
    """What is played."""
    credit: CreditTable = Field(default_factory=CreditTable)
    """How credit is assigned."""
    train: Mapping[str, Any] = Field(default_factory=dict[str, Any])
    """Options of `graphcredit train`."""
    evaluate: EvaluateTable | None = None
    """Evaluations; none if not given."""

    @field_validator("out", "model", mode="before")
    @classmethod
    def _absolute(cls, path: Any) -> Any:
        """Make a path absolute; links stay as they are."""
        if path == "" or not isinstance(path, str | Path):
            raise ValueError("the path of a directory")
        return Path(os.path.abspath(path))

    @model_validator(mode="after")
    def _agree(self) -> Self:
        """Refuse options that contradict each other."""
        if self.collect.allocation == "spo3" and "spo3" not in self.credit.estimators:
            raise OptionError(
                "collect.allocation = 'spo3' branches where history/ says so, which only the "
                "estimator spo3 writes: add it to credit.estimators, which are "
                f"{', '.join(self.credit.estimators)}"
            )
        return self

    def as_json(self) -> dict[str, Any]:
        """Return every option as JSON has it; `loop_config` reads it."""
        return self.model_dump(mode="json")


def read_loop_config(path: Path, settings: Iterable[str] = ()) -> LoopConfig:
    """Return the configuration of a TOML file.

    Args:
        path: The file.
        settings: `NAME=VALUE` or `TABLE.NAME=VALUE` each, which win over the file; a value is TOML,
            or text without quotes.

    Raises:
        OptionError: The file cannot be read, or an option is unknown, missing or out of range.
    """
    values = read_toml(path)
    for setting in settings:
        _put(values, setting)
    return loop_config(values)


def loop_config(values: Mapping[str, Any]) -> LoopConfig:
    """Return the configuration of nested tables of values, its paths made whole.

    Raises:
        OptionError: An option is unknown, missing or out of range.
    """
    train = values.get("train", {})
    if isinstance(train, Mapping) and isinstance(train.get("reference"), str):
        values = {**values, "train": {**train, "reference": _absolute_model(train["reference"])}}
    return LoopConfig(**values)


def _absolute_model(model: str) -> str:
    """Return the absolute path of a model's directory; a name in the cache is left as it is."""
    return os.path.abspath(model) if Path(model).is_dir() else model


def _put(values: dict[str, Any], setting: str) -> None:
    target, equals, text = setting.partition("=")
    *tables, name = target.split(".", 1)
    if not equals or not name:
        raise OptionError(f"--set takes NAME=VALUE or TABLE.NAME=VALUE: got {setting!r}")
    try:
        value = parse_toml(f"value = {text}")["value"]
    except ValueError:
        value = text
    for table in tables:
        inner: Any = values.setdefault(table, {})
        if not isinstance(inner, dict):
            raise OptionError(f"--set {setting}: {table} must be a table, but is {inner!r}")
        values = inner
    values[name] = value
