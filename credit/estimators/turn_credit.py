"""Turn credit: what the score of the state gained, spread over the turns that led there."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.parts import episode_part
from graphcredit.credit.estimators.relative import relative
from graphcredit.credit.steps.arrays import Floats, Ints, discounted_returns, sum_per_run
from graphcredit.store.errors import InputError
from graphcredit.store.options import Discount, Weight
from graphcredit.store.parquet.numbers import numpy_of
from graphcredit.store.schema import LARGEST_NUMBER


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnCredit:
    """GRPO's level, and within a rollout more for turns before and at gains of the score.

        p_t = score_t - the last score before it; 0 without one, or without a score
        c_t = Σ_{k≥t} γ^{k-t} p_k / (1 + γ + … + γ^k)
        A_o = R(τ) + Σ p_t, less the mean of the same over the group
        A_g = c_t - mean of c over the steps of τ
        A   = A_o + β A_g

    score is how good the state after a step is, R(τ) is `episode_return`. Each gain is handed out
    once: Σ c_t = Σ p_t, the last score less the first. A peak that is lost again nets 0. Without
    scores A is the return less the group's mean. Equal rollouts get A_g alone, as does one that
    is alone in its group. In the mean of c each turn counts once; prime-rl weighs it by its tokens.
    Source: prime-rl PR 3282.
    """

    gamma: Discount = 0.9
    """γ: how much less of a gain each turn further back gets. 0 is all to the turn that made it, 1
    is as much to all turns before it."""
    beta: Weight = 1.0
    """β, weight of the step part."""

    def assign(self, batch: StepBatch) -> dict[str, Floats]:
        """Return the parts of the advantage, each [num_steps].

        Raises:
            InputError: A score is not finite, or too large.
        """
        gained = gains(known_scores(batch.columns["score"]), batch.trajectory_of_step)
        place = np.arange(batch.num_steps) - batch.trajectory_start[batch.trajectory_of_step]
        spread_over = np.cumsum(np.power(self.gamma, np.arange(place.max(initial=0) + 1)))
        credit = discounted_returns(gained / spread_over[place], batch.trajectory_start, self.gamma)
        step = relative(credit, batch.trajectory_of_step, len(batch.is_success), normalize="none")
        total = batch.episode_return + sum_per_run(gained, batch.trajectory_start)
        episode = episode_part(batch, total, normalize="none", stat_over="trajectories")
        return {
            "step_reward": credit,
            "step_advantage": step,
            "episode_advantage": episode,
            "advantage": episode + self.beta * step,
        }


def known_scores(column: pa.ChunkedArray) -> Floats:
    """Return the scores of steps, NaN where nobody judged. [num_steps].

    Raises:
        InputError: One is not finite, or too large.
    """
    values = numpy_of(column)
    broken = ~(np.abs(values) <= LARGEST_NUMBER)
    if broken.any():
        raise InputError(
            f"score must be a number from {-LARGEST_NUMBER:g} to {LARGEST_NUMBER:g}, or null: "
            f"{int(broken.sum()):,} of {len(values):,} steps have others, the first "
            f"{values[broken][0]}. `graphcredit check` names them; where nobody judged, write null"
        )
    return np.where(numpy_of(column.is_null()), np.nan, values)


def gains(score: Floats, trajectory_of_step: Ints) -> Floats:
    """Return by how much each step's score is above the last one before it. [num_steps].

    The first score of a trajectory has nothing before it, and steps without a score gain nothing:
    what they gained is in the next score. So the gains of a trajectory add up to its last score
    less its first one.

    Args:
        score: [num_steps] NaN where nobody judged.
        trajectory_of_step: [num_steps] ascending.
    """
    judged = np.flatnonzero(~np.isnan(score))
    before, after = judged[:-1], judged[1:]
    follows = trajectory_of_step[before] == trajectory_of_step[after]
    gained = np.zeros(len(score))
    gained[after[follows]] = score[after[follows]] - score[before[follows]]
    return gained
