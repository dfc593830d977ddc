"""Where a loop has everything, and what each of its iterations is to do.

DIR/
  config.json             what the loop was asked to do, and hashes of models and template
  store/                  every run: RUN, and RUN-greedy and RUN-sampled of the evaluations
  policies/policy-000000  the model to begin with; its name is the version that the log has
  policies/policy-000001  what iteration 0 made of it, as `graphcredit train` leaves it
  loop.jsonl              one line for each iteration, and one for the last policy's evaluation
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphcredit.loop.config import LoopConfig
from graphcredit.store import Store
from graphcredit.store.errors import OptionError

if TYPE_CHECKING:
    from graphcredit.collector.environments.base import Task
    from graphcredit.credit.iteration.settings import CreditSettings
    from graphcredit.trainer.config import TrainConfig

_SET_BY_LOOP = ("store", "out", "model", "run", "iteration", "policy_version", "continue_from")


@dataclass(frozen=True, kw_only=True, slots=True)
class Loop:
    """A loop. Get one whose directory is made from `loop_open.open_loop`."""

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
        return -(-len(self.tasks) // self._num_tasks)

    @property
    def num_updates(self) -> int:
        """Iterations in all, and the number of the last policy."""
        return self.config.iterations * self.updates_per_pass

    def tasks_of(self, iteration: int) -> tuple["Task", ...]:
        """Return what is played in an iteration."""
        first = iteration % self.updates_per_pass * self._num_tasks
        return self.tasks[first : first + self._num_tasks]

    @property
    def _num_tasks(self) -> int:
        """How many are played in an iteration; the last one of a pass may have fewer."""
        every = self.config.update_every
        named = {"iteration": len(self.tasks), "group": 1}
        return named[every] if isinstance(every, str) else min(every, len(self.tasks))

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
        """Return how credit is assigned; the window reaches over whole passes."""
        from graphcredit.credit.iteration.settings import settings_of

        credit = self.config.credit
        return settings_of(credit.changed(graph_window=credit.graph_window * self.updates_per_pass))

    def train_config(self, iteration: int) -> "TrainConfig":
        """Return how the policy of an iteration becomes the next one."""
        return _train_config(self.config, iteration)


def link(path: Path, target: str | Path) -> None:
    """Make a path stand for another one, if it does not exist yet."""
    if not os.path.lexists(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        os.symlink(target, path)


def _policy_dir(config: LoopConfig, number: int) -> Path:
    return config.out / "policies" / f"policy-{number:06d}"


def _model(config: LoopConfig, number: int) -> str:
    return str(_policy_dir(config, number) / "model")


def _train_config(config: LoopConfig, iteration: int) -> "TrainConfig":
    """Return the configuration of a training: what [train] says, and where everything is.

    The optimizer goes on from the policy before, unless with LoRA; the divergence is from the first
    policy.
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
    elif (before / "config.toml").exists():
        raise OptionError(
            f"{before} must have the result.json that its training left there, so that the "
            f"optimizer goes on: found none. Put it back, or begin another loop from {before}/model"
        )
    if config.train.get("kl_coefficient") != 0:
        values.setdefault("reference", _model(config, 0))
    return read_config(None, values)
