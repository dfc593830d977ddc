"""What is run: the games, the arms that are compared, and the values that every arm is tuned over.

Every arm starts from the same warm policies, plays the same games with the same budget, and is
tuned over the same learning rates and divergence coefficients. Only the advantage differs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from experiments.textworld.curves import SMOOTHED
from graphcredit.loop.config import LoopConfig, loop_config

PUBLISHED: tuple[str, ...] = (
    "grpo",
    "rloo",
    "gigpo",
    "rewardflow",
    "graphgpo",
    "spo3",
    "g2po",
)
"""Estimators of the papers."""

ARMS: tuple[str, ...] = (*PUBLISHED, "analogy")
"""Estimators that are compared."""

_SCORES: Mapping[str, Any] = MappingProxyType({"set": ["spo3.xi=1000000", "spo3.omega_k=10"]})
"""3SPO's drop in score and success alone."""

_POST_STEP: Mapping[str, Any] = MappingProxyType(
    {
        "update_every": "group",
        # An iteration is one game, and of a tree more paths pass where it is hard.
        "evaluate": {"every": 1, "tasks": 0, "greedy": False, "samples": 8},
    }
)
"""A training after each game; success is that of plays of all games beside."""

VARIANTS: Mapping[str, tuple[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "spo3-tractable": ("spo3", {"credit": {"set": ["spo3.xi=1000000"]}}),
        "spo3-scores": ("spo3", {"credit": _SCORES}),
        "spo3-post-step": ("spo3", {**_POST_STEP, "credit": _SCORES}),
        "spo3-branching": (
            "spo3",
            {**_POST_STEP, "collect": {"allocation": "spo3"}, "credit": _SCORES},
        ),
        "graphgpo-step": ("graphgpo", {"credit": {"set": ["graphgpo.episode_weight=0"]}}),
        "graphgpo-window": ("graphgpo", {"credit": {"graph_window": 4}}),
    }
)
"""Arms that explain others: an estimator, and what is changed of the loop's tables. 3SPO without
its rule of intractable states, without novelty too, then trained after each game, then with
rollouts that branch as well (with the rule, more and more of them end where they begin); GraphGPO
without its episode part, and on the graph of four earlier iterations too, in which a group without
a success may still have a goal."""


def is_played_beside(arm: str) -> bool:
    """Return whether the success of an arm is that of plays beside those that it learns from."""
    return "evaluate" in VARIANTS[arm][1] if arm in VARIANTS else False


LEARNING_RATES: tuple[float, ...] = (3e-4, 6e-4, 1.5e-4, 1.2e-3)
KL_COEFFICIENTS: tuple[float, ...] = (0.02, 0.05, 0.0)
"""Every arm is tried with each coefficient at the first rate, then with the other rates at the
coefficient that was best for it."""

DEVICES: tuple[str, ...] = ("cpu", "cuda")
"""What a run may be made on."""

Tuning = tuple[float, float]
"""Learning rate and KL coefficient."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One kind of games, and how long they are played."""

    name: str
    shape: str
    """TextWorld's `custom` games: rooms, objects, actions of the quest, and how they are told."""
    games: tuple[int, ...]
    """Seeds of the games that are learnt from."""
    held_out: tuple[int, ...] = ()
    """Seeds of games that are only played, by repeats: nothing is tuned on them."""
    max_steps: int
    """Of a trajectory."""
    budget: int
    """Environment steps over which arms are compared; a run ends with the iteration that reaches
    them."""
    sweep_budget: int
    """The same of the runs that arms are tuned by."""
    batch_size: int
    """Steps of an optimizer step."""
    update_every: str | int = "iteration"
    """As `[loop]` has it: after how many games is learnt."""
    arms: tuple[str, ...] = ARMS
    warm_starts: int = 3
    seeds: int = 6
    """Runs of a tuned arm, on the warm starts in turn."""
    variants: tuple[str, ...] = ()
    """Repeated with the tuning of the arm that they change."""
    variant_seeds: int = 3
    """Runs of a variant: the first ones of the arms' seeds."""
    episodes: int = 1200
    """Random plays that a warm start imitates, over all games, held-out ones among them: it stands
    for a pretrained model, which knows the words of all."""
    updates: int = 600
    """Optimizer steps of that."""

    @property
    def window(self) -> int:
        """Iterations that a learning curve is averaged over: a pass over all games at least."""
        named = {"iteration": len(self.games), "group": 1}
        every = self.update_every
        num_games = named[every] if isinstance(every, str) else every
        return max(SMOOTHED, -(-len(self.games) // num_games))

    def specs(self, seeds: Sequence[int]) -> str:
        """Return the names of games as `collect --games` takes them."""
        return ",".join(f"custom-{self.shape}-s{seed}" for seed in seeds)


SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {
        setting.name: setting
        for setting in (
            Setting(
                name="quick",
                shape="r5o5q5b1n1",
                games=(2, 6, 10),
                max_steps=20,
                budget=5_000,
                sweep_budget=5_000,
                batch_size=120,
                arms=("graphgpo",),
                warm_starts=1,
                seeds=1,
                episodes=240,
                updates=200,
            ),
            Setting(
                name="easy",
                shape="r5o5q5b1n1",
                games=(2, 3, 5, 6, 8, 10, 18, 19),
                max_steps=20,
                budget=12_000,
                sweep_budget=8_000,
                batch_size=320,
                variants=("spo3-tractable", "spo3-scores", "graphgpo-step", "graphgpo-window"),
            ),
            Setting(
                name="hard",
                shape="r8o8q6b1n1",
                games=tuple(range(16)),
                max_steps=25,
                budget=24_000,
                sweep_budget=12_000,
                batch_size=320,
                arms=PUBLISHED,
                seeds=5,
                variants=("spo3-scores", "spo3-post-step", "spo3-branching"),
                episodes=800,
                updates=400,
            ),
            Setting(
                name="general",
                shape="r5o5q5b1n1",
                games=tuple(range(64)),
                held_out=tuple(range(1000, 1016)),
                max_steps=20,
                budget=30_000,
                sweep_budget=15_000,
                batch_size=640,
                update_every=16,
                arms=PUBLISHED,
                seeds=5,
                episodes=1600,
                updates=600,
            ),
        )
    }
)
"""Quick: whether anything is learnt at all. Easy: one group in two has a success at first. Hard:
longer quests in larger worlds. General: enough games that those it never learnt from may profit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One run of the loop."""

    setting: str
    arm: str
    learning_rate: float
    kl_coefficient: float
    warm: int
    seed: int
    """0 in the sweep alone."""
    device: str = "cpu"
    """What trains it; a GPU samples wherever there is one. Runs of two devices are not compared:
    rounding differs, and so do the seconds."""

    @property
    def budget(self) -> int:
        """Environment steps after which it ends."""
        setting = SETTINGS[self.setting]
        return setting.budget if self.seed else setting.sweep_budget

    @property
    def name(self) -> str:
        """A folder of its own: what is tuned, then what is repeated."""
        tuned = f"lr{self.learning_rate:g}-kl{self.kl_coefficient:g}"
        device = "" if self.device == "cpu" else f"-{self.device}"
        return f"{self.setting}/{self.arm}/{tuned}/warm{self.warm}-seed{self.seed}{device}"

    @property
    def estimator(self) -> str:
        """What its advantages are of."""
        return VARIANTS[self.arm][0] if self.arm in VARIANTS else self.arm

    def config(self, out: Path) -> LoopConfig:
        """Return the loop of this run.

        Args:
            out: Where all runs and warm starts are.
        """
        setting = SETTINGS[self.setting]
        _, changed = VARIANTS.get(self.arm, ("", {}))
        config: dict[str, Any] = {
            "out": out / self.name,
            "model": warm_start(out, self.setting, self.warm) / "model",
            # More than the budget has: no trajectory is shorter than a step.
            "iterations": self.budget,
            "collect": {
                "games": setting.specs(setting.games),
                "tasks": len(setting.games),
                "seed": self.seed,
                "max_steps": setting.max_steps,
                "template": "tiny",
                "max_new_tokens": 14,
                # Of what is sampled and what is trained alike, on every device.
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
                "old_logprobs": "behaviour",
                "seed": self.seed,
                "device": self.device,
                "dtype": "float32",
            },
        }
        # What arms are tuned by has seed 0, and plays no held-out games.
        if setting.held_out and self.seed:
            config["evaluate"] = {
                "every": 1,
                "games": setting.specs(setting.held_out),
                "tasks": len(setting.held_out),
                "on_training_games": False,
                "greedy": False,
                "samples": 8,
            }
        for table, values in changed.items():
            is_table = isinstance(values, Mapping)
            config[table] = {**config.get(table, {}), **values} if is_table else values
        return loop_config(config)


def warm_start(out: Path, setting: str, number: int) -> Path:
    """Return where a warm policy is."""
    return out / setting / f"warm-{number}"


def sweep(setting: str, device: str = "cpu") -> list[Cell]:
    """Return the runs that show each arm's KL coefficient: one seed on one warm start."""
    return [
        _swept(setting, arm, (rate, kl), device)
        for rate in LEARNING_RATES[:1]
        for kl in KL_COEFFICIENTS
        for arm in SETTINGS[setting].arms
    ]


def sweep_rates(setting: str, best: Mapping[str, Tuning], device: str = "cpu") -> list[Cell]:
    """Return the runs that show each arm's learning rate.

    Args:
        setting: The setting.
        best: What was best for each arm so far.
        device: What they are made on.
    """
    return [
        _swept(setting, arm, (rate, kl), device)
        for rate in LEARNING_RATES[1:]
        for arm, (_, kl) in best.items()
    ]


def _swept(setting: str, arm: str, tuning: Tuning, device: str) -> Cell:
    rate, kl = tuning
    return Cell(
        setting=setting,
        arm=arm,
        learning_rate=rate,
        kl_coefficient=kl,
        warm=0,
        seed=0,
        device=device,
    )


def repeats(setting: str, best: Mapping[str, Tuning], device: str = "cpu") -> list[Cell]:
    """Return the runs of the tuned arms: every seed, on the warm starts in turn.

    Args:
        setting: The setting.
        best: What was best for each arm; one that is not there is left out.
        device: What they are made on.
    """
    chosen = SETTINGS[setting]
    tunings = {arm: best[arm] for arm in chosen.arms if arm in best}
    return _repeats(chosen, tunings, chosen.seeds, device)


def variants(setting: str, best: Mapping[str, Tuning], device: str = "cpu") -> list[Cell]:
    """Return the runs of the arms that explain others, with the tuning of those.

    Args:
        setting: The setting.
        best: What was best for each arm; the variants of one that is not there are left out.
        device: What they are made on.
    """
    chosen = SETTINGS[setting]
    changes = {variant: VARIANTS[variant][0] for variant in chosen.variants}
    tunings = {variant: best[arm] for variant, arm in changes.items() if arm in best}
    return _repeats(chosen, tunings, chosen.variant_seeds, device)


def _repeats(
    setting: Setting, tunings: Mapping[str, Tuning], seeds: int, device: str
) -> list[Cell]:
    return [
        Cell(
            setting=setting.name,
            arm=arm,
            learning_rate=rate,
            kl_coefficient=kl,
            warm=seed % setting.warm_starts,
            seed=seed,
            device=device,
        )
        for seed in range(1, seeds + 1)
        for arm, (rate, kl) in tunings.items()
    ]
