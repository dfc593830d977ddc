"""Settings of the experiment: the games, the compared arms, and the values each arm is tuned over.

Every arm starts from the same warm policies, plays the same games with the same budget, and is
tuned over the same learning rates and divergence coefficients. Only the advantage differs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from experiments.textworld.curves import SMOOTHED

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
    vocabulary: int = 1024
    """Tokens of the tokenizer, at most."""
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
                shape="r2o2q2b1n1",
                games=(2, 6, 10),
                max_steps=8,
                budget=1_000,
                sweep_budget=1_000,
                batch_size=64,
                arms=("graphgpo",),
                warm_starts=1,
                seeds=1,
                episodes=150,
                updates=100,
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
                episodes=1280,
                vocabulary=2048,
                updates=1000,
            ),
        )
    }
)
"""Quick tests whether anything is learnt at all. In easy, one group in two has a success at first.
Hard has longer quests in larger worlds. General has enough games to improve held-out games too.
Unseen asks what holds on games that nothing is learnt from; its endpoint is in `unseen.py`."""
