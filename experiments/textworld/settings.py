"""Settings of the experiment: the games, the compared arms, and the values each arm is tuned over.

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

ARMS: tuple[str, ...] = (*PUBLISHED, "reach")
"""Estimators that are compared."""

_SCORES: Mapping[str, Any] = MappingProxyType({"set": ["spo3.xi=1000000", "spo3.omega_k=10"]})
"""3SPO's drop in score and success alone."""

_POST_STEP: Mapping[str, Any] = MappingProxyType(
    {
        "update_every": "group",
        # An iteration is one game, and a branching tree has more paths where the game is hard.
        "evaluate": {"every": 1, "tasks": 0, "greedy": False, "samples": 8},
    }
)
"""Trains after each game; success is measured in separate plays of all games."""

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
        "reach-no-lists": ("reach", {"collect": {"record_admissible": False}}),
    }
)
"""Arms that explain others, as an estimator and the changes to the loop's tables.

3SPO runs without its rule of intractable states, then also without novelty, then also with training
after each game, then also with rollouts that branch. (With the rule, more and more rollouts end
where they begin.) GraphGPO runs without its episode part, and with the graph of four earlier
iterations, in which a group without a success may still have a goal. `reach` runs on a log without
lists of admissible actions, so that it imagines nothing; the policy reads them as in all arms."""


def is_played_beside(arm: str) -> bool:
    """Return whether an arm's success is measured in separate plays that it does not learn from."""
    return "evaluate" in VARIANTS[arm][1] if arm in VARIANTS else False


LEARNING_RATES: tuple[float, ...] = (3e-4, 6e-4, 1.5e-4, 1.2e-3)
KL_COEFFICIENTS: tuple[float, ...] = (0.02, 0.05, 0.0)
"""Values that every arm is tried with, unless its setting names others."""

DEVICES: tuple[str, ...] = ("cpu", "cuda")
"""Devices that can make a run."""

Tuning = tuple[float, float]
"""Learning rate and KL coefficient."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One kind of games, and how long they are played."""

    name: str
    shape: str
    """Options of TextWorld's `custom` games: rooms, objects, actions of the quest, and texts."""
    games: tuple[int, ...]
    """Seeds of the training games."""
    held_out: tuple[int, ...] = ()
    """Seeds of held-out games. Only repeats play them; nothing is trained or tuned on them."""
    max_steps: int
    """Steps after which a trajectory is truncated."""
    budget: int
    """Environment steps over which arms are compared. A run ends with the iteration that reaches
    this number."""
    sweep_budget: int
    """The same for the runs of the sweep."""
    batch_size: int
    """Environment steps of an optimizer step."""
    update_every: str | int = "iteration"
    """Games between two trainings, as in the table `[loop]`."""
    arms: tuple[str, ...] = ARMS
    retired: tuple[str, ...] = ()
    """Arms of estimators that are gone: their kept runs are shown, and none is made."""
    warm_starts: int = 3
    seeds: int = 6
    """Runs of a tuned arm, on the warm starts in turn."""
    variants: tuple[str, ...] = ()
    """Variants that are repeated with the tuning of the arm that they change."""
    learning_rates: tuple[float, ...] = LEARNING_RATES
    kl_coefficients: tuple[float, ...] = KL_COEFFICIENTS
    """Values of the sweep: each coefficient at the first rate, then the other rates with the best
    coefficient."""
    one_pass: bool = False
    """Runs end after one pass over the games, whatever their steps, instead of a budget. Held-out
    games are played before and after it."""
    sweep_games: int | None = None
    """Games of a run of the sweep, the first ones; all if not given."""
    samples: int = 8
    """Plays of each held-out game in an evaluation."""
    variant_seeds: int = 3
    """Runs of a variant. It uses the first of the arms' seeds."""
    episodes: int = 1200
    """Random plays that a warm start imitates, over all games, including held-out ones: it stands
    for a pretrained model, which knows the words of all games."""
    updates: int = 600
    """Optimizer steps of the imitation."""

    @property
    def shown(self) -> tuple[str, ...]:
        """Arms whose runs are reported."""
        return (*self.arms, *self.retired)

    @property
    def window(self) -> int:
        """Iterations that a learning curve is averaged over: at least one pass over all games."""
        named = {"iteration": len(self.games), "group": 1}
        every = self.update_every
        num_games = named[every] if isinstance(every, str) else every
        return max(SMOOTHED, -(-len(self.games) // num_games))

    def specs(self, seeds: Sequence[int]) -> str:
        """Return the names of games in the form of `collect --games`."""
        return ",".join(f"custom-{self.shape}-s{seed}" for seed in seeds)


_MOST_STEPS = 1_000_000
"""More than a pass has: its end comes first."""

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
                retired=("analogy",),
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
            Setting(
                name="unseen",
                shape="r5o5q5b1n1",
                games=tuple(range(256)),
                held_out=tuple(range(1000, 1064)),
                max_steps=20,
                budget=_MOST_STEPS,
                sweep_budget=_MOST_STEPS,
                batch_size=640,
                update_every=16,
                arms=("grpo", "graphgpo", "reach", "reach-no-lists"),
                # The policy of the sweep, and one for each pair.
                warm_starts=6,
                seeds=5,
                learning_rates=(3e-4, 6e-4, 1.5e-4),
                kl_coefficients=(0.02,),
                one_pass=True,
                sweep_games=96,
                samples=16,
                episodes=960,
                updates=400,
            ),
        )
    }
)
"""Quick tests whether anything is learnt at all. In easy, one group in two has a success at first.
Hard has longer quests in larger worlds. General has enough games to improve held-out games too.
Unseen asks what holds on games that nothing is learnt from; its endpoint is in `unseen.py`."""


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
    device: str = "cpu"
    """Device that trains it; a GPU samples wherever there is one. Runs of two devices are not
    compared, because rounding and seconds differ."""

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
        device = "" if self.device == "cpu" else f"-{self.device}"
        return f"{self.setting}/{self.arm}/{tuned}/warm{self.warm}-seed{self.seed}{device}"

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
                # Sampling and training use the same dtype, on every device.
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


def sweep(setting: str, device: str = "cpu") -> list[Cell]:
    """Return the runs that tune each arm's KL coefficient, with one seed on one warm start."""
    return [
        _swept(setting, arm, (rate, kl), device)
        for rate in SETTINGS[setting].learning_rates[:1]
        for kl in SETTINGS[setting].kl_coefficients
        for arm in SETTINGS[setting].shown
    ]


def sweep_rates(setting: str, best: Mapping[str, Tuning], device: str = "cpu") -> list[Cell]:
    """Return the runs that tune each arm's learning rate.

    Args:
        setting: Name of the setting.
        best: Best tuning of each arm so far.
        device: Device that makes them.
    """
    return [
        _swept(setting, arm, (rate, kl), device)
        for rate in SETTINGS[setting].learning_rates[1:]
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
        setting: Name of the setting.
        best: Best tuning of each arm; arms without one are left out.
        device: Device that makes them.
    """
    chosen = SETTINGS[setting]
    tunings = {arm: best[arm] for arm in chosen.shown if arm in best}
    return _repeats(chosen, tunings, chosen.seeds, device)


def variants(setting: str, best: Mapping[str, Tuning], device: str = "cpu") -> list[Cell]:
    """Return the runs of the variants, with the tuning of the arm that each one changes.

    Args:
        setting: Name of the setting.
        best: Best tuning of each arm; variants of arms without one are left out.
        device: Device that makes them.
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
