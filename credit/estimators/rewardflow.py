"""RewardFlow: the goal's value flows back along the graph."""

from dataclasses import dataclass

import numpy as np

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.earnings import Earnings
from graphcredit.credit.estimators.ends import Worth, best_end
from graphcredit.credit.estimators.parts import episode_part, state_part
from graphcredit.credit.estimators.relative import Normalize, StatOver
from graphcredit.credit.steps.arrays import Floats
from graphcredit.store.options import Discount, Weight


@dataclass(frozen=True, kw_only=True, slots=True)
class RewardFlow:
    """A step is worth the potential it gains on the graph without invalid steps and self-loops.

        V(s) = γ^{d(s)}                               V(goal) = 1; 0 without a path
        step reward = V(s_{t+1}) - V(s_t)             0 for an invalid step
        A = w_a · rel(step reward; state group) + w_τ · rel(ok(τ); group)

    d is `graph.goal_hops`, s_t is `state_of_step`, s_{t+1} is `target_of_step`, ok is `is_success`.
    A group without success has V = 0 everywhere, so no step signal. The published code reaches the
    same V by a thousand sweeps of V ← max(V, γ V(next)). Source: RewardFlow paper, Eq. 3-9.

    As published it reads no rewards. With `worth=returns` every end is a goal that is worth what
    was scored there (`ends.py`): V is the best of worth · γ^hops, and R' takes the place of ok(τ).
    Where returns are 0 and 1 that changes nothing. This option is ours.
    """

    gamma: Discount = 0.9
    """γ, decay of the value per transition."""
    step_weight: Weight = 1.0
    """w_a, weight of the step part."""
    episode_weight: Weight = 1.0
    """w_τ, weight of the episode part."""
    normalize: Normalize = "std"
    """Divide by the standard deviation, or not."""
    stat_over: StatOver = "trajectories"
    """For the episode part: count each rollout once, or once per step."""
    worth: Worth = "success"
    """What an end is worth: 1 at the goal (success), or what was scored there (returns)."""

    def value(self, batch: StepBatch) -> Floats:
        """Return V of every node. [num_nodes]."""
        if self.worth == "returns":
            return best_end(batch, batch.graph.hop, self.gamma)
        hops = batch.graph.goal_hops
        return np.where(np.isfinite(hops), np.power(self.gamma, hops), 0.0)

    def assign(self, batch: StepBatch) -> dict[str, Floats]:
        """Return the parts of the advantage, each [num_steps]."""
        value = self.value(batch)
        gain = value[batch.target_of_step] - value[batch.state_of_step]
        reward = np.where(batch.is_valid, gain, 0.0)
        step = state_part(batch, reward, normalize=self.normalize)
        is_by_returns = self.worth == "returns"
        outcome = (
            Earnings.of(batch).of_trajectory if is_by_returns else batch.is_success.astype(float)
        )
        episode = episode_part(batch, outcome, normalize=self.normalize, stat_over=self.stat_over)
        return {
            "step_reward": reward,
            "step_advantage": step,
            "episode_advantage": episode,
            "advantage": self.step_weight * step + self.episode_weight * episode,
        }
