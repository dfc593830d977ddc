"""The directory of a loop, and the settings of each of its iterations.

DIR/
  config.json             the loop's configuration, and hashes of models and template
  store/                  every run: RUN, and RUN-greedy and RUN-sampled of the evaluations
  policies/policy-000000  the first model; the folder's name is the policy_version in the log
  policies/policy-000001  the output of `graphcredit train` in iteration 0
  loop.jsonl              one line per iteration, and one for the last policy's evaluation
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

_SET_BY_LOOP = ("store", "out", "model", "run", "iteration", "continue_from")


@dataclass(frozen=True, kw_only=True, slots=True)
class Loop:
    """A loop. `loop.open.open_loop` makes its directory and returns it."""

    config: LoopConfig
    """The loop's configuration."""
    tasks: tuple["Task", ...]
    """Tasks to learn from."""
    held_out: tuple["Task", ...]
    """Tasks that are only played for evaluation."""

    @property
    def store(self) -> Store:
        """The store in which every run is recorded."""
        return Store(self.config.out / "store")

    @property
    def updates_per_pass(self) -> int:
        """Number of iterations in which every task is played once."""
        return -(-len(self.tasks) // self._num_tasks)

    @property
    def num_updates(self) -> int:
        """Number of all iterations; also the number of the last policy."""
        return self.config.iterations * self.updates_per_pass

    def tasks_of(self, iteration: int) -> tuple["Task", ...]:
        """Return the tasks that an iteration plays."""
        first = iteration % self.updates_per_pass * self._num_tasks
        return self.tasks[first : first + self._num_tasks]

    @property
    def _num_tasks(self) -> int:
        """Number of tasks that an iteration plays; the last one of a pass may play fewer."""
        every = self.config.update_every
        named = {"iteration": len(self.tasks), "group": 1}
        return named[every] if isinstance(every, str) else min(every, len(self.tasks))

    def is_evaluated(self, number: int) -> bool:
        """Return whether a policy is evaluated: every `evaluate.every` passes, and the last one."""
        evaluate = self.config.evaluate
        if evaluate is None:
            return False
        return number == self.num_updates or number % (evaluate.every * self.updates_per_pass) == 0

    def policy_dir(self, number: int) -> Path:
        """Return the directory of a policy."""
        return self.config.out / "policies" / f"policy-{number:06d}"

    def policy(self, number: int) -> str:
        """Return a policy as the argument of `graphcredit collect --policy`."""
        return self.config.collect.policy(self.policy_dir(number) / "model")

    def credit_settings(self) -> "CreditSettings":
        """Return the settings of the credit stage."""
        from graphcredit.credit.iteration.settings import settings_of

        return settings_of(self.config.credit)

    def train_config(self, iteration: int) -> "TrainConfig":
        """Return the training configuration that turns an iteration's policy into the next one.

        It is the table [train], with paths filled in. The optimizer state continues from the
        previous policy's, except with LoRA. The KL divergence is from the first policy.
        """
        from graphcredit.trainer.config import read_config

        config, before = self.config, self.policy_dir(iteration)
        if taken := [name for name in _SET_BY_LOOP if name in config.train]:
            raise OptionError(f"[train] must not set {taken[0]!r}: the loop sets it. Remove it")
        values: dict[str, Any] = {
            "advantage": config.credit.estimators[0],
            **config.train,
            "store": config.out / "store",
            "out": self.policy_dir(iteration + 1),
            "model": str(before / "model"),
            "run": config.run,
            "iteration": iteration,
        }
        if (before / "result.json").exists():
            values["continue_from"] = before
        elif (before / "config.toml").exists():
            raise OptionError(
                f"{before} must have the result.json of its training, so that the optimizer state "
                f"can continue: found none. Put it back, or start another loop from {before}/model"
            )
        if config.train.get("kl_coefficient") != 0:
            values.setdefault("reference", str(self.policy_dir(0) / "model"))
        return read_config(None, values)


def link(path: Path, target: str | Path) -> None:
    """Make a symbolic link, unless its path exists already."""
    if not os.path.lexists(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        os.symlink(target, path)
