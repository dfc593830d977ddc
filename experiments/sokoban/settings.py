"""The experiment: boards, arms, seeds, and the endpoint, which was fixed before the first run.

**Endpoint.** The mean exact success on 64 boards that are never seen in training, after
`ITERATIONS` iterations. Arms are compared by its difference, paired by warm start.

**Boards.** 256 to learn from, 64 to choose learning rates on, 64 for the endpoint. All differ.

**Warm starts.** A policy with random weights copies `oracle:0.2` on the 256 boards until it wins
`WARM_SUCCESS` of them. Each warm start has its own weights and its own demonstrations.

**Tuning.** For each arm every rate of `RATES` is tried from the three warm starts `TUNING_WARMS`,
which are not reported. The rate with the best mean success at the end, on the 64 boards for tuning,
is repeated from the ten warm starts `REPORTED_WARMS`.

**Secondary**: mean success on unseen boards over the whole curve, and success on the 256 boards.
"""

import json
from dataclasses import asdict, dataclass
from functools import lru_cache

from experiments.episodes import GROUP_SIZE
from experiments.sokoban.boards import Boards, drawn
from experiments.sokoban.policy import HORIZON, WIDTH
from experiments.sokoban.update import BATCH, EPOCHS, MAX_NORM
from graphcredit.credit.estimators.table import Assigner, configure
from graphcredit.store.errors import OptionError
from graphcredit.store.options import options_as_json

ARMS: tuple[str, ...] = ("grpo", "gigpo", "graphgpo", "reach", "reach/no-lists")
"""Arms by default."""

SIZES: tuple[str, ...] = ("6x6b2", "7x7b1")
"""Rows, columns and boxes of the boards. Each size is an experiment of its own."""

NUM_TRAINING, NUM_HELD_OUT = 256, 64
FIRST_TUNING_SEED, FIRST_UNSEEN_SEED = 100_000, 200_000

ITERATIONS = 200
GROUPS = 32
"""Boards of an iteration, so that eight iterations are a pass."""
EVALUATE_EVERY = 20
RATES: tuple[float, ...] = (3e-4, 1e-3, 3e-3, 1e-2)
WARM_SUCCESS = 0.25
TUNING_WARMS: tuple[int, ...] = (100, 101, 102)
REPORTED_WARMS: tuple[int, ...] = tuple(range(10))

_NO_LISTS = "/no-lists"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One run."""

    size: str
    arm: str
    """`ESTIMATOR`, `ESTIMATOR:OPTION=VALUE,...`, either with `/no-lists` behind it."""
    rate: float
    warm: int
    """Number of the warm start; it seeds the run as well."""

    @property
    def name(self) -> str:
        """Name of its file of rows."""
        arm = self.arm.replace("/", "-")
        return f"{self.size}-{arm}-{self.rate:g}-{self.warm}"


def made_by(cell: Cell) -> str:
    """Return all that determines the rows of a run but the code."""
    name, options, with_lists = read_arm(cell.arm)
    return json.dumps(
        {
            "cell": asdict(cell),
            "estimator": [name, options_as_json(options), with_lists],
            "sizes": [NUM_TRAINING, NUM_HELD_OUT, ITERATIONS, GROUPS, GROUP_SIZE, HORIZON],
            "seeds": [FIRST_TUNING_SEED, FIRST_UNSEEN_SEED],
            "update": [BATCH, EPOCHS, MAX_NORM, WIDTH, WARM_SUCCESS],
        },
        sort_keys=True,
    )


def read_arm(arm: str) -> tuple[str, Assigner, bool]:
    """Return the name of an arm's estimator, its options, and whether lists are logged.

    Raises:
        OptionError: There is no such estimator, or no such option.
    """
    text = arm.removesuffix(_NO_LISTS)
    name, _, listed = text.partition(":")
    if "/" in name:
        raise OptionError(f"only {_NO_LISTS} may stand behind an estimator: got {arm!r}")
    settings = [f"{name}.{setting}" for setting in listed.split(",") if setting]
    return name, configure([name], settings)[name], text == arm


@lru_cache(maxsize=1)
def boards_of(size: str) -> dict[str, Boards]:
    """Return the boards of a size: `training`, `tuning` and `unseen`."""
    training = drawn(size, NUM_TRAINING, first_seed=0)
    tuning = drawn(size, NUM_HELD_OUT, first_seed=FIRST_TUNING_SEED, unlike=training)
    unseen = drawn(size, NUM_HELD_OUT, first_seed=FIRST_UNSEEN_SEED, unlike=(*training, *tuning))
    sets = {"training": training, "tuning": tuning, "unseen": unseen}
    return {kind: Boards.of(names) for kind, names in sets.items()}
