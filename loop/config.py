"""What a loop is asked to do: a TOML file with a table for each stage, every option explained."""

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_origin, get_type_hints

from graphcredit.store.errors import OptionError
from graphcredit.store.options import Between, Count, check_options, read_toml
from graphcredit.trainer.config_words import VERSION, VERSION_KEY, in_words_of_today

AtLeastOne = Between(1)


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectTable:
    """`[collect]`: what is played, as the flags of `graphcredit collect` say it."""

    env: Annotated[str, "What to play: textworld, search."] = "textworld"
    games: Annotated[str | None, "Which games, by commas; all kinds if not given."] = None
    tasks: Annotated[int, AtLeastOne, "Tasks to play."] = 16
    seed: Annotated[
        int, Count, "Decides actions, and the games where `games` leaves them open."
    ] = 0
    engine: Annotated[Literal["hf", "vllm"], "What samples: transformers or vLLM."] = "hf"
    group_size: Annotated[int, AtLeastOne, "Trajectories of each task."] = 8
    max_steps: Annotated[int, AtLeastOne, "Steps after which one is truncated."] = 30
    temperature: Annotated[float, Between(0.0, above=True), "Of sampling."] = 1.0
    template: Annotated[str | None, "Prompt template; that of the environment if not given."] = None
    max_new_tokens: Annotated[int, AtLeastOne, "Where an answer is cut off."] = 512
    dtype: Annotated[
        Literal["auto", "float32", "bfloat16"],
        "What the model computes in when it plays; auto is bfloat16 on a GPU.",
    ] = "auto"
    concurrency: Annotated[
        int | None, AtLeastOne, "Trajectories that a process plays at a time; 64 if not given."
    ] = None
    workers: Annotated[int, Count, "Processes that play; 0 plays in the loop's own."] = 0
    allocation: Annotated[
        Literal["spo3"] | None, "Branch where history/ says that a state is unresolved."
    ] = None
    resample_degenerate: Annotated[
        int, Count, "Groups to add to a task while all its returns are equal."
    ] = 0
    games_dir: Annotated[str | None, "Where games are kept; the user's cache if not given."] = None
    oracle: Annotated[bool, "Record the true remaining plan length; slower."] = False


@dataclass(frozen=True, kw_only=True, slots=True)
class CreditTable:
    """`[credit]`: how credit is assigned, as the flags of `graphcredit credit` say it."""

    estimators: Annotated[
        tuple[str, ...], "What to compute; the first is trained on, unless [train] says otherwise."
    ] = ("graphgpo",)
    set: Annotated[tuple[str, ...], "Options of estimators, ESTIMATOR.OPTION=VALUE each."] = ()
    merge: Annotated[str, "Which texts are one state: exact, segments or embedding."] = "exact"
    threshold: Annotated[float, "Least cosine at which embedding unites two states."] = 0.95
    embedder: Annotated[str, "ngram, or a sentence-transformers model on this machine."] = "ngram"
    normalise: Annotated[tuple[str, ...], "Rules that texts go through first."] = ()
    substitute: Annotated[tuple[str, ...], "'REGEX=>TEXT' each, applied after the rules."] = ()
    guard: Annotated[bool, "Never unite states whose admissible actions differ."] = True
    invalid_action_penalty: Annotated[
        float, Between(0.0), "Taken off the reward of every invalid step first."
    ] = 0.0
    graph_window: Annotated[
        int, Count, "Find distances on the last so many passes over the tasks too."
    ] = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluateTable:
    """`[evaluate]`: how well the policy plays now and then; nothing is learnt from it."""

    every: Annotated[int, AtLeastOne, "Iterations between evaluations; the last policy is too."] = 5
    games: Annotated[str | None, "Held-out games; those of [collect] if not given."] = None
    tasks: Annotated[int, Count, "Held-out tasks; 0 for none."] = 16
    seed: Annotated[
        int, Count, "Decides actions, and held-out games whose names leave them open."
    ] = 1000
    on_training_games: Annotated[bool, "Play the training's tasks too."] = True
    greedy: Annotated[bool, "Play each task once, always the most probable token."] = True
    samples: Annotated[int, Count, "Trajectories of each task at temperature 1; 0 for none."] = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class LoopConfig:
    """A loop. The string in each type explains the option of that name."""

    out: Annotated[Path, "Where store, policies and loop.jsonl go."]
    model: Annotated[Path, "Directory of the model to begin with."]
    iterations: Annotated[int, AtLeastOne, "How often every task is played and learnt from."]
    run: Annotated[str, "The run to record; evaluations go to RUN-greedy and RUN-sampled."] = "r0"
    update_every: Annotated[
        Literal["iteration", "group"] | int,
        AtLeastOne,
        "Train when all tasks are played, after each (post-step), or after so many (a number).",
    ] = "iteration"
    collect: Annotated[CollectTable, "What is played."] = field(default_factory=CollectTable)
    credit: Annotated[CreditTable, "How credit is assigned."] = field(default_factory=CreditTable)
    train: Annotated[Mapping[str, Any], "Options of `graphcredit train`."] = field(
        default_factory=dict[str, Any]
    )
    evaluate: Annotated[EvaluateTable | None, "Evaluations; none if not given."] = None

    def check(self) -> None:
        """Raise OptionError where an option is out of its range."""
        check_options(self, owner="loop")
        for name in ("collect", "credit", "evaluate"):
            table = getattr(self, name)
            if table is not None:
                check_options(table, owner=name)
        if self.collect.allocation == "spo3" and "spo3" not in self.credit.estimators:
            raise OptionError(
                "collect.allocation = 'spo3' branches where history/ says so, which only the "
                "estimator spo3 writes: add it to credit.estimators, which are "
                f"{', '.join(self.credit.estimators)}"
            )

    def as_json(self) -> dict[str, Any]:
        """Return every option as JSON has it; `loop_config` reads it."""
        paths = {"out": str(self.out), "model": str(self.model)}
        return {VERSION_KEY: VERSION, **asdict(self), **paths}


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


def loop_config(values: Mapping[str, Any], *, version: int = VERSION) -> LoopConfig:
    """Return the configuration of nested tables of values, its paths made whole.

    Args:
        values: Options and tables by name.
        version: Of the words of `[train]`, where the values do not say.

    Raises:
        OptionError: An option is unknown, missing or out of range.
    """
    version = values.get(VERSION_KEY, version)
    values = {name: value for name, value in values.items() if name != VERSION_KEY}
    tables: dict[str, Any] = {
        "collect": _table(CollectTable, values.get("collect", {}), "collect"),
        "credit": _table(CreditTable, values.get("credit", {}), "credit"),
    }
    if values.get("evaluate") is not None:
        tables["evaluate"] = _table(EvaluateTable, values["evaluate"], "evaluate")
    train = values.get("train", {})
    if isinstance(train, Mapping):
        tables["train"] = in_words_of_today(train, version)
        if isinstance(train.get("reference"), str):
            tables["train"]["reference"] = _whole(train["reference"])
    paths = {name: _path(name, values[name]) for name in ("out", "model") if name in values}
    config: LoopConfig = _table(LoopConfig, {**values, **tables, **paths}, "loop")
    config.check()
    return config


def _path(name: str, value: Any) -> Path:
    """Return a whole path; links are left as they are."""
    if not isinstance(value, str | Path) or value == "":
        raise OptionError(f"loop.{name} must be the path of a directory: got {value!r}")
    return Path(os.path.abspath(value))


def _whole(model: str) -> str:
    """Return the whole path of a model's directory; a name in the cache is left as it is."""
    return os.path.abspath(model) if Path(model).is_dir() else model


def _table(kind: type[Any], values: Any, owner: str) -> Any:
    if not isinstance(values, Mapping):
        raise OptionError(f"{owner} must be a table: got {values!r}")
    hints = get_type_hints(kind)
    unknown = sorted(values.keys() - hints.keys())
    if unknown:
        known = ", ".join(hints)
        raise OptionError(f"{owner} has no option {unknown[0]!r}; its options: {known}")
    needed = [f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]
    missing = [name for name in needed if name not in values]
    if missing:
        raise OptionError(f"{owner} must be told {missing[0]!r}")
    return kind(**{name: _read(hints[name], value) for name, value in values.items()})


def _read(hint: Any, value: Any) -> Any:
    return tuple(value) if get_origin(hint) is tuple and isinstance(value, list) else value


def _put(values: dict[str, Any], setting: str) -> None:
    target, equals, text = setting.partition("=")
    *tables, name = target.split(".", 1)
    if not equals or not name:
        raise OptionError(f"--set takes NAME=VALUE or TABLE.NAME=VALUE: got {setting!r}")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    for table in tables:
        inner: Any = values.setdefault(table, {})
        if not isinstance(inner, dict):
            raise OptionError(f"--set {setting}: {table} must be a table, but is {inner!r}")
        values = inner
    values[name] = value
