"""What is run: the games, the arms that are compared, and the values that every arm is tuned over.

Every arm starts from the same warm policies, plays the same games with the same budget, and is
tuned over the same learning rates and divergence coefficients. Only the advantage differs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from graphcredit.cli.loop_config import LoopConfig, loop_config

ARMS: tuple[str, ...] = ("grpo", "rloo", "gigpo", "rewardflow", "graphgpo", "spo3", "g2po")
"""Estimators that are compared."""

LEARNING_RATES: tuple[float, ...] = (3e-4, 1e-4)
KL_COEFFICIENTS: tuple[float, ...] = (0.02, 0.05, 0.0)
"""Every arm is swept over all pairs of these, in this order."""

WARM_STARTS, SEEDS = 3, 5
"""Warm policies, and seeds of reinforcement learning on each of the tuned arms' runs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One kind of games, and how long they are played."""

    name: str
    shape: str
    """TextWorld's `custom` games: rooms, objects, actions of the quest, and how they are told."""
    seeds: tuple[int, ...]
    """Games that are learnt from."""
    held_out: tuple[int, ...]
    """Games that are only played."""
    iterations: int
    max_steps: int
    evaluate_every: int
    budget: int
    """Environment steps over which arms are compared."""

    def games(self, seeds: tuple[int, ...]) -> str:
        """Return the names of games as `collect --games` takes them."""
        return ",".join(f"custom-{self.shape}-s{seed}" for seed in seeds)


SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {
        setting.name: setting
        for setting in (
            Setting(
                name="easy",
                shape="r5o5q5b1n1",
                seeds=(2, 3, 5, 6, 8, 10, 18, 19),
                held_out=(9, 12, 13, 15),
                iterations=30,
                max_steps=20,
                evaluate_every=10,
                budget=20_000,
            ),
            Setting(
                name="hard",
                shape="r8o8q6b1n1",
                seeds=tuple(range(16)),
                held_out=(100, 101, 102, 103),
                iterations=40,
                max_steps=25,
                evaluate_every=20,
                budget=60_000,
            ),
            Setting(
                name="general",
                shape="r5o5q5b1n1",
                seeds=tuple(range(64)),
                held_out=tuple(range(1000, 1016)),
                iterations=30,
                max_steps=20,
                evaluate_every=10,
                budget=150_000,
            ),
        )
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One run of the loop."""

    setting: str
    arm: str
    learning_rate: float
    kl_coefficient: float
    warm: int
    seed: int

    @property
    def name(self) -> str:
        """A folder of its own: what is tuned, then what is repeated."""
        tuned = f"lr{self.learning_rate:g}-kl{self.kl_coefficient:g}"
        return f"{self.setting}/{self.arm}/{tuned}/warm{self.warm}-seed{self.seed}"

    def config(self, out: Path, *, iterations: int | None = None) -> LoopConfig:
        """Return the loop of this run.

        Args:
            out: Where all runs and warm starts are.
            iterations: Fewer than the setting's.
        """
        setting = SETTINGS[self.setting]
        return loop_config(
            {
                "out": out / self.name,
                "model": warm_start(out, self.setting, self.warm) / "model",
                "iterations": iterations or setting.iterations,
                "collect": {
                    "games": setting.games(setting.seeds),
                    "tasks": len(setting.seeds),
                    "seed": self.seed,
                    "max_steps": setting.max_steps,
                    "template": "tiny",
                    "max_new_tokens": 14,
                },
                "credit": {"estimators": [self.arm]},
                "train": self._train(),
                "evaluate": {
                    "every": setting.evaluate_every,
                    "games": setting.games(setting.held_out),
                    "tasks": len(setting.held_out),
                    "samples": 8,
                    "greedy": True,
                },
            }
        )

    def _train(self) -> dict[str, Any]:
        return {
            "learning_rate": self.learning_rate,
            "kl_coefficient": self.kl_coefficient,
            "beta2": 0.98,
            "batch_size": 320,
            "max_tokens": 4096,
            "old_logprobs": "behaviour",
            "seed": self.seed,
            "device": "cpu",
        }


def warm_start(out: Path, setting: str, number: int) -> Path:
    """Return where a warm policy is."""
    return out / setting / f"warm-{number}"


def sweep(setting: str) -> list[Cell]:
    """Return the runs that every arm is tuned by: one seed on one warm start, all pairs."""
    return [
        Cell(setting=setting, arm=arm, learning_rate=rate, kl_coefficient=kl, warm=0, seed=0)
        for rate in LEARNING_RATES
        for kl in KL_COEFFICIENTS
        for arm in ARMS
    ]


def repeats(setting: str, best: Mapping[str, tuple[float, float]]) -> list[Cell]:
    """Return the runs of the tuned arms: every seed on every warm start.

    Args:
        setting: The setting.
        best: Arm to its learning rate and divergence coefficient.
    """
    return [
        Cell(setting=setting, arm=arm, learning_rate=rate, kl_coefficient=kl, warm=warm, seed=seed)
        for seed in range(1, SEEDS + 1)
        for warm in range(WARM_STARTS)
        for arm, (rate, kl) in best.items()
    ]
