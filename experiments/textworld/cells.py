"""The runs of a setting: the sweep that tunes each arm, and the repeats of the tuned arms."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.textworld.settings import SETTINGS, VARIANTS, Setting
from graphcredit.loop.config import LoopConfig, loop_config

Tuning = tuple[float, float]
"""Learning rate and KL coefficient."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One run of the loop."""

    setting: str
    arm: str
    learning_rate: float
    kl_coefficient: float
    warm: int
    seed: int
    """0 only in the sweep."""

    @property
    def budget(self) -> int:
        """Environment steps after which it ends."""
        setting = SETTINGS[self.setting]
        return setting.budget if self.seed else setting.sweep_budget

    @property
    def games(self) -> tuple[int, ...]:
        """Seeds of the games that it learns from."""
        setting = SETTINGS[self.setting]
        return setting.games if self.seed else setting.games[: setting.sweep_games]

    def is_done(self, iteration: int, env_steps: int) -> bool:
        """Return whether it ends with an iteration, after which it has spent these steps."""
        setting = SETTINGS[self.setting]
        if not setting.one_pass:
            return env_steps >= self.budget
        every = int(setting.update_every)
        # Where held-out games are played, the last policy has an iteration that plays nothing else.
        return iteration + (self.seed == 0) == -(-len(self.games) // every)

    @property
    def name(self) -> str:
        """Path of its folder: setting, arm, tuning, then warm start and seed."""
        tuned = f"lr{self.learning_rate:g}-kl{self.kl_coefficient:g}"
        return f"{self.setting}/{self.arm}/{tuned}/warm{self.warm}-seed{self.seed}"

    @property
    def estimator(self) -> str:
        """Estimator of its advantages."""
        return VARIANTS[self.arm][0] if self.arm in VARIANTS else self.arm

    def config(self, out: Path) -> LoopConfig:
        """Return the loop configuration of this run.

        Args:
            out: Directory of all runs and warm starts.
        """
        setting = SETTINGS[self.setting]
        _, changed = VARIANTS.get(self.arm, ("", {}))
        config: dict[str, Any] = {
            "out": out / self.name,
            "model": warm_start(out, self.setting, self.warm) / "model",
            # More than the budget allows, because every trajectory has at least one step.
            "iterations": 1 if setting.one_pass else self.budget,
            "collect": {
                "games": setting.specs(self.games),
                "tasks": len(self.games),
                "seed": self.seed,
                "max_steps": setting.max_steps,
                "template": "tiny",
                "max_new_tokens": 14,
                # Sampling and training use the same dtype.
                "dtype": "float32",
            },
            "update_every": setting.update_every,
            "credit": {"estimators": [self.estimator]},
            "train": {
                "learning_rate": self.learning_rate,
                "kl_coefficient": self.kl_coefficient,
                "beta2": 0.98,
                "batch_size": setting.batch_size,
                "max_tokens": 4096,
                "correction": "bypass",
                "seed": self.seed,
                "device": "cpu",
                "dtype": "float32",
            },
        }
        # The sweep has seed 0, and plays no held-out games.
        if setting.held_out and self.seed:
            config["evaluate"] = {
                "every": 1,
                "games": setting.specs(setting.held_out),
                "tasks": len(setting.held_out),
                "on_training_games": False,
                "greedy": False,
                "samples": setting.samples,
            }
            if setting.one_pass:
                config["evaluate"]["seed"] = 1000 * self.seed  # pairs do not share their chance
        for table, values in changed.items():
            is_table = isinstance(values, Mapping)
            config[table] = {**config.get(table, {}), **values} if is_table else values
        return loop_config(config)


def warm_start(out: Path, setting: str, number: int) -> Path:
    """Return the directory of a warm policy."""
    return out / setting / f"warm-{number}"


def sweep(setting: str) -> list[Cell]:
    """Return the runs that tune each arm's KL coefficient, with one seed on one warm start."""
    return [
        _cell(setting, arm, (rate, kl))
        for rate in SETTINGS[setting].learning_rates[:1]
        for kl in SETTINGS[setting].kl_coefficients
        for arm in SETTINGS[setting].shown
    ]


def sweep_rates(setting: str, best: Mapping[str, Tuning]) -> list[Cell]:
    """Return the runs that tune each arm's learning rate.

    Args:
        setting: Name of the setting.
        best: Best tuning of each arm so far.
    """
    return [
        _cell(setting, arm, (rate, kl))
        for rate in SETTINGS[setting].learning_rates[1:]
        for arm, (_, kl) in best.items()
    ]


def repeats(setting: str, best: Mapping[str, Tuning]) -> list[Cell]:
    """Return the runs of the tuned arms: every seed, on the warm starts in turn.

    Args:
        setting: Name of the setting.
        best: Best tuning of each arm; arms without one are left out.
    """
    chosen = SETTINGS[setting]
    tunings = {arm: best[arm] for arm in chosen.shown if arm in best}
    return _repeats(chosen, tunings, chosen.seeds)


def variants(setting: str, best: Mapping[str, Tuning]) -> list[Cell]:
    """Return the runs of the variants, with the tuning of the arm that each one changes.

    Args:
        setting: Name of the setting.
        best: Best tuning of each arm; variants of arms without one are left out.
    """
    chosen = SETTINGS[setting]
    changes = {variant: VARIANTS[variant][0] for variant in chosen.variants}
    tunings = {variant: best[arm] for variant, arm in changes.items() if arm in best}
    return _repeats(chosen, tunings, chosen.variant_seeds)


def _repeats(setting: Setting, tunings: Mapping[str, Tuning], seeds: int) -> list[Cell]:
    return [
        _cell(setting.name, arm, tuning, warm=seed % setting.warm_starts, seed=seed)
        for seed in range(1, seeds + 1)
        for arm, tuning in tunings.items()
    ]


def _cell(setting: str, arm: str, tuning: Tuning, *, warm: int = 0, seed: int = 0) -> Cell:
    rate, kl = tuning
    return Cell(
        setting=setting, arm=arm, learning_rate=rate, kl_coefficient=kl, warm=warm, seed=seed
    )
