"""The experiment, as it was written down before its first run.

Question: does a pretrained language model learn more by `reach` than by GRPO, on games that nothing
was learnt from? `gigpo` and `graphgpo` play along. Only the advantage differs between arms; the
rate is that of docs/how-to/language-model.md, which was chosen before, and is tuned for none.

- Start: one policy for all, made by the three commands of docs/how-to/language-model.md.
- Games: 64 of TextWorld to learn from, 64 others to be judged by, with at most 16 and 40 steps.
- A cell is a loop of one arm, length and seed: two passes over the games in eight iterations.
- Endpoint: the share of the unseen games that is won after the last iteration, of 4 plays each.
- A pair is the cells of all arms of one length and seed. Four pairs are planned for each length.
- Main comparison: reach - grpo at 40 steps, by the mean of the pairs' differences and the 95 %
  interval of Student's t. Before all cells of a length are there, nothing is claimed about it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphcredit.loop.config import LoopConfig, loop_config

ARMS = ("reach", "grpo", "gigpo", "graphgpo")
"""Estimators, the one that is asked about first."""

_COLLECT = {"env": "textworld", "template": "plain", "max_new_tokens": 32, "group_size": 8}
_TRAIN = {
    "learning_rate": 2e-5,
    "kl_coefficient": 0.02,
    "correction": "bypass",
    "batch_size": 512,
    "max_tokens": 16384,
}


def _games(first: int) -> str:
    return ",".join(f"custom-r5o5q5b1n1-s{seed}" for seed in range(first, first + 64))


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What is played, how often, and how it is learnt from."""

    learnt: str = field(default_factory=lambda: _games(0))
    """Games to learn from."""
    unseen: str = field(default_factory=lambda: _games(1000))
    """Games to be judged by."""
    num_games: int = 64
    update_every: int = 16
    """Games of an iteration."""
    passes: int = 2
    samples: int = 4
    """Plays of each unseen game."""
    lengths: tuple[int, ...] = (16, 40)
    seeds: tuple[int, ...] = (1, 2, 3, 4)
    collect: Mapping[str, Any] = field(default_factory=lambda: _COLLECT)
    train: Mapping[str, Any] = field(default_factory=lambda: _TRAIN)

    def cells(self) -> list["Cell"]:
        """Return all cells, one pair after the other."""
        return [
            Cell(plan=self, arm=arm, length=length, seed=seed)
            for seed in self.seeds
            for length in self.lengths
            for arm in ARMS
        ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One loop."""

    plan: Plan
    arm: str
    length: int
    """Most steps of a trajectory."""
    seed: int

    @property
    def key(self) -> dict[str, Any]:
        """What tells its row apart."""
        return {"arm": self.arm, "length": self.length, "seed": self.seed}

    def config(self, model: Path, out: Path, workers: int) -> LoopConfig:
        """Return the configuration of its loop, in a folder of its own within `out`."""
        plan = self.plan
        return loop_config(
            {
                "out": out / f"{self.arm}-{self.length}-{self.seed}",
                "model": model,
                "iterations": plan.passes,
                "update_every": plan.update_every,
                "collect": {
                    **plan.collect,
                    "games": plan.learnt,
                    "tasks": plan.num_games,
                    "max_steps": self.length,
                    "seed": self.seed,
                    "workers": workers,
                },
                "credit": {"estimators": [self.arm]},
                "train": {**plan.train, "seed": self.seed},
                "evaluate": {
                    "every": plan.passes,
                    "games": plan.unseen,
                    "tasks": plan.num_games,
                    "on_training_games": False,
                    "greedy": False,
                    "samples": plan.samples,
                    "seed": 1000 * self.seed,  # pairs do not share their chance
                },
            }
        )
