"""The experiment: its games, the compared arms, and the runs of its pairs.

Endpoint, main comparison and rate were written down before the first run, and stand in
docs/research/learning.md. All arms of a pair begin from one warm policy and play the same games
with the same seeds; only the advantage differs. Two warm policies begin two pairs each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from examples.warm_up import WarmUp
from graphcredit.loop.config import LoopConfig, loop_config

ARMS: tuple[str, ...] = ("grpo", "gigpo", "graphgpo", "reach")
"""Estimators whose advantages are learnt from."""

RATE = 6e-4
"""Learning rate of every arm."""

KL_COEFFICIENT = 0.02
WARM_POLICIES: Mapping[int, int] = MappingProxyType({1: 1, 4: 4, 2: 1, 3: 4})
"""Seed of a pair, the runs of all arms, to that of the warm policy that they begin from."""

SAMPLES = 8
"""Plays of each held-out game in an evaluation."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Games:
    """Games, and how they are learnt from."""

    shape: str
    """Options of TextWorld's `custom` games: rooms, objects, actions of the quest, and texts."""
    seeds: tuple[int, ...]
    """Those of the games that are learnt from."""
    held_out: tuple[int, ...]
    """Those of games that nothing is learnt from."""
    passes: int
    """How often a run plays each game."""
    update_every: int
    """Games between two trainings."""
    max_steps: int
    batch_size: int
    """Environment steps of an optimizer step."""
    episodes: int
    """Random plays of each game that a warm policy imitates, also of games that are held out: it
    stands for a pretrained model, which knows the words of all games."""
    vocabulary: int
    updates: int
    """Optimizer steps of the imitation."""

    def specs(self, seeds: Sequence[int]) -> str:
        """Return the names of games in the form of `collect --games`."""
        return ",".join(f"custom-{self.shape}-s{seed}" for seed in seeds)


UNSEEN = Games(
    shape="r5o5q5b1n1",
    seeds=tuple(range(256)),
    held_out=tuple(range(1000, 1064)),
    passes=1,
    update_every=16,
    max_steps=20,
    batch_size=640,
    episodes=4,
    vocabulary=2048,
    updates=1000,
)

QUICK = Games(
    shape="r2o2q2b1n1",
    seeds=(2, 6, 10),
    held_out=(),
    passes=10,
    update_every=3,
    max_steps=8,
    batch_size=64,
    episodes=50,
    vocabulary=1024,
    updates=100,
)
"""Whether anything is learnt at all, in a minute or two."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One run of the loop."""

    out: Path
    """Directory of all runs and warm policies."""
    arm: str
    seed: int
    """Seeds the plays and the order of training; 0 only in the quick run."""
    games: Games = UNSEEN

    @property
    def name(self) -> str:
        """Name of its folder, and of its file of rows."""
        return f"{self.arm}-{self.seed}"

    @property
    def warm(self) -> Path:
        """Directory of the policy that it begins from."""
        return self.out / f"warm-{self._warm_seed}"

    @property
    def _warm_seed(self) -> int:
        return WARM_POLICIES.get(self.seed, self.seed)

    def warm_up(self) -> WarmUp:
        """Return how the policy that it begins from is made: by imitating random play."""
        games = (*self.games.seeds, *self.games.held_out)
        return WarmUp(
            directory=self.warm,
            env="textworld",
            games=self.games.specs(games),
            tasks=len(games),
            episodes=self.games.episodes,
            max_steps=self.games.max_steps,
            vocabulary=self.games.vocabulary,
            updates=self.games.updates,
            seed=self._warm_seed,
            workers=0,
        )

    def config(self) -> LoopConfig:
        """Return the loop's configuration."""
        games = self.games
        config: dict[str, Any] = {
            "out": self.out / "loops" / self.name,
            "model": self.warm / "policy" / "model",
            "iterations": games.passes,
            "collect": {
                "games": games.specs(games.seeds),
                "tasks": len(games.seeds),
                "seed": self.seed,
                "max_steps": games.max_steps,
                "template": "tiny",
                "max_new_tokens": 14,
                # Sampling and training use the same dtype.
                "dtype": "float32",
            },
            "update_every": games.update_every,
            "credit": {"estimators": [self.arm]},
            "train": {
                "learning_rate": RATE,
                "kl_coefficient": KL_COEFFICIENT,
                "beta2": 0.98,
                "batch_size": games.batch_size,
                "max_tokens": 4096,
                "share_prefixes": True,
                "correction": "bypass",
                "seed": self.seed,
                "device": "cpu",
                "dtype": "float32",
            },
        }
        if games.held_out:
            config["evaluate"] = {
                "every": 1,
                "games": games.specs(games.held_out),
                "tasks": len(games.held_out),
                "on_training_games": False,
                "greedy": False,
                "samples": SAMPLES,
                # Pairs do not share their chance.
                "seed": 1000 * self.seed,
            }
        return loop_config(config)


def pairs(out: Path) -> list[Cell]:
    """Return the runs of all arms, one pair after the other."""
    return [Cell(out=out, arm=arm, seed=seed) for seed in WARM_POLICIES for arm in ARMS]
