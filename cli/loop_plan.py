"""Where a loop has everything, and what each of its iterations is to do.

DIR/
  config.json             what the loop was asked to do
  store/                  every run: RUN, and RUN-greedy and RUN-sampled of the evaluations
  policies/policy-000000  the model to begin with; its name is the version that the log has
  policies/policy-000001  what iteration 0 made of it, as `graphcredit train` leaves it
  loop.jsonl              one line for each iteration, and one for the last policy's evaluation
"""

import json
import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphcredit.cli.loop_config import CreditTable, LoopConfig, loop_config
from graphcredit.store import Store, create_store
from graphcredit.store.atomic import atomic_path
from graphcredit.store.errors import OptionError
from graphcredit.store.lock import alone_in

if TYPE_CHECKING:
    from graphcredit.collector.environment import Task
    from graphcredit.credit.settings import CreditSettings
    from graphcredit.trainer.config import TrainConfig

_SET_BY_LOOP = ("store", "out", "model", "run", "iteration", "policy_version", "continue_from")
_MAY_CHANGE = frozenset({"collect.workers", "collect.concurrency", "collect.games_dir"})
"""Options that do not change what is learnt."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Loop:
    """A loop whose directory is made. Get one from `open_loop`."""

    config: LoopConfig
    """What it was asked to do."""
    tasks: tuple["Task", ...]
    """What is learnt from."""
    held_out: tuple["Task", ...]
    """What is only played to evaluate."""

    @property
    def store(self) -> Store:
        """Where every run is recorded."""
        return Store(self.config.out / "store")

    @property
    def updates_per_pass(self) -> int:
        """Iterations until every task was played once."""
        return len(self.tasks) if self.config.update_every == "group" else 1

    @property
    def num_updates(self) -> int:
        """Iterations in all, and the number of the last policy."""
        return self.config.iterations * self.updates_per_pass

    def tasks_of(self, iteration: int) -> tuple["Task", ...]:
        """Return what is played in an iteration."""
        if self.config.update_every == "iteration":
            return self.tasks
        return (self.tasks[iteration % len(self.tasks)],)

    def is_evaluated(self, number: int) -> bool:
        """Return whether a policy is evaluated: now and then, and the last one."""
        evaluate = self.config.evaluate
        if evaluate is None:
            return False
        return number == self.num_updates or number % (evaluate.every * self.updates_per_pass) == 0

    def policy_dir(self, number: int) -> Path:
        """Return where a policy is."""
        return _policy_dir(self.config, number)

    def policy(self, number: int) -> str:
        """Return a policy as `graphcredit collect` is told it."""
        return f"{self.config.collect.engine}:{_model(self.config, number)}"

    def credit_settings(self) -> "CreditSettings":
        """Return how credit is assigned."""
        return _credit_settings(self.config.credit)

    def train_config(self, iteration: int) -> "TrainConfig":
        """Return how the policy of an iteration becomes the next one."""
        return _train_config(self.config, iteration)


@contextmanager
def open_loop(config: LoopConfig) -> Generator[Loop]:
    """Make the directory of a loop, or look whether what is there is of this one; be alone in it.

    Raises:
        InputError: Another process runs it.
        OptionError: An option is wrong, a task is both learnt from and held out, there is no model,
            or the directory is of a loop that was configured otherwise.
        MissingDependencyError: The library of the environment is not installed.
    """
    config.check()
    if not (config.model / "config.json").is_file():
        raise OptionError(
            f"model must be the directory of a model: {config.model} has no config.json"
        )
    tasks, held_out = _tasks(config)
    _credit_settings(config.credit)
    _train_config(config, 0)
    refusal = (
        f"{config.out} must have one loop at a time, but another process runs one there: wait for "
        "it, end it, or name another `out`"
    )
    with alone_in(config.out, refusal):
        _claim(config)
        create_store(config.out / "store")
        link(_policy_dir(config, 0) / "model", config.model.resolve())
        yield Loop(config=config, tasks=tuple(tasks), held_out=tuple(held_out))


def link(path: Path, target: str | Path) -> None:
    """Make a path stand for another one, if it does not exist yet."""
    if not path.is_symlink():
        path.parent.mkdir(parents=True, exist_ok=True)
        os.symlink(target, path)


def _tasks(config: LoopConfig) -> tuple[Sequence["Task"], Sequence["Task"]]:
    """Return the tasks to learn from, and those that are held out."""
    from graphcredit.collector.environments.table import environment_kind

    collect, evaluate = config.collect, config.evaluate
    kind = environment_kind(collect.env)
    tasks = kind.list_tasks(collect.games, num_tasks=collect.tasks, seed=collect.seed)
    if evaluate is None or not evaluate.tasks:
        return tasks, ()
    games = evaluate.games or collect.games
    held_out = kind.list_tasks(games, num_tasks=evaluate.tasks, seed=evaluate.seed)
    if both := [task.task_id for task in held_out if task in tasks]:
        raise OptionError(
            f"held-out tasks must not be learnt from: {both[0]} is in [collect] and in [evaluate]. "
            "Name other games in [evaluate], or set its tasks to 0"
        )
    return tasks, held_out


def _claim(config: LoopConfig) -> None:
    """Write down what the loop is asked to do, or compare it with what was written."""
    path = config.out / "config.json"
    if path.exists():
        found = loop_config(json.loads(path.read_text(encoding="utf-8")))
        if changed := list(_changes(config, found)):
            raise OptionError(
                f"{path} is of a loop that was configured otherwise ({'; '.join(changed)}): give "
                "the same options to go on with it, or name another `out`"
            )
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(config.as_json(), indent=2) + "\n", encoding="utf-8")


def _changes(config: LoopConfig, found: LoopConfig) -> Iterator[str]:
    """Yield what two loops learn differently, as text."""
    from graphcredit.trainer.config import differences, without_effect

    wanted, was = _decisive(config), _decisive(found)
    for name in wanted:
        if wanted[name] != was[name]:
            yield f"{name} is {wanted[name]!r}, was {was[name]!r}"
    pair = [without_effect(_train_config(c, 0)) for c in (config, found)]
    yield from (f"train.{text}" for text in differences(*pair))


def _decisive(config: LoopConfig) -> dict[str, Any]:
    """Return the options that change what is learnt, but for those of the training."""
    values = config.as_json()
    flat = {
        f"{table}.{name}": value
        for table in ("collect", "credit")
        for name, value in values[table].items()
    }
    named = {name: values[name] for name in ("model", "run", "update_every")}
    return named | {name: value for name, value in flat.items() if name not in _MAY_CHANGE}


def _policy_dir(config: LoopConfig, number: int) -> Path:
    return config.out / "policies" / f"policy-{number:06d}"


def _model(config: LoopConfig, number: int) -> str:
    return str(_policy_dir(config, number) / "model")


def _credit_settings(table: CreditTable) -> "CreditSettings":
    from graphcredit.credit.merging import MergeSettings
    from graphcredit.credit.settings import CreditSettings
    from graphcredit.credit.table import configure

    settings = CreditSettings(
        estimators=configure(table.estimators, table.set),
        merge=MergeSettings(
            merge=table.merge,
            threshold=table.threshold,
            embedder=table.embedder,
            rules=table.normalise,
            substitutions=table.substitute,
            guard=table.guard,
        ),
        invalid_action_penalty=table.invalid_action_penalty,
        graph_window=table.graph_window,
    )
    settings.check()
    return settings


def _train_config(config: LoopConfig, iteration: int) -> "TrainConfig":
    """Return the configuration of a training: what [train] says, and where everything is.

    The optimizer goes on from the policy before, and the divergence is from the first policy.
    """
    from graphcredit.trainer.config import read_config

    if taken := [name for name in _SET_BY_LOOP if name in config.train]:
        raise OptionError(f"[train] must leave {taken[0]!r} to the loop, which sets it")
    before = _policy_dir(config, iteration)
    values: dict[str, Any] = {
        "advantage": config.credit.estimators[0],
        "tensorboard": False,
        **config.train,
        "store": config.out / "store",
        "out": _policy_dir(config, iteration + 1),
        "model": _model(config, iteration),
        "run": config.run,
        "iteration": iteration,
        "policy_version": before.name,
    }
    if (before / "result.json").exists():
        values["continue_from"] = before
    if config.train.get("kl_coefficient") != 0:
        values.setdefault("reference", _model(config, 0))
    return read_config(None, values)
