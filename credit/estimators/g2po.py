"""G2PO: mean returns as values of states, and what each step gains in value."""

from dataclasses import dataclass

import numpy as np

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.parts import episode_part, state_part
from graphcredit.credit.estimators.relative import Normalize, relative
from graphcredit.credit.steps.arrays import Floats
from graphcredit.store.options import Discount, Weight


@dataclass(frozen=True, kw_only=True, slots=True)
class G2po:
    """A step is judged by the value of where it leads, among its siblings and among all steps.

        V(s) = mean over the steps from s of γ^{T-t} R(τ)      V(goal) = R_goal
        v'   = V(s_{t+1}); 0 where an unsuccessful rollout ends
        step reward = v' - V(s_t)
        A_S  = rel(v' - 0.1·[invalid]; state group) + rel(v' - V(s_t); all steps of the group)
        A    = rel(R(τ); group) + w · A_S

    t counts from 0, T is `trajectory_length`, R is `episode_return`, s is `state_of_step` and
    `target_of_step`. Source: arXiv 2606.22995.
    """

    gamma: Discount = 0.95
    """γ, discount of the return by the steps that are left."""
    step_weight: Weight = 1.0
    """w, weight of the step part."""
    success_reward: Weight = 10.0
    """R_goal."""
    invalid_penalty: Weight = 0.1
    """Taken off the value of where an invalid step leads, among its siblings."""
    normalize: Normalize = "std"
    """Divide by the standard deviation, or not."""

    def assign(self, batch: StepBatch) -> dict[str, Floats]:
        """Return the parts of the advantage, each [num_steps]."""
        value = self._value(batch)
        reached = value[batch.target_of_step]
        failed_ends = (batch.trajectory_start[1:] - 1)[~batch.is_success]
        reached[failed_ends] = 0.0
        gain = reached - value[batch.state_of_step]
        penalised = reached - self.invalid_penalty * ~batch.is_valid
        step = state_part(batch, penalised, normalize=self.normalize)
        step += relative(gain, batch.group_of_step, batch.num_groups, normalize=self.normalize)
        episode = episode_part(
            batch, batch.episode_return, normalize=self.normalize, stat_over="trajectories"
        )
        return {
            "step_reward": gain,
            "step_advantage": step,
            "episode_advantage": episode,
            "advantage": episode + self.step_weight * step,
        }

    def _value(self, batch: StepBatch) -> Floats:
        """Return V of every node. [num_nodes]; 0 where no step starts."""
        trajectory, state = batch.trajectory_of_step, batch.state_of_step
        left = batch.trajectory_start[1:][trajectory] - np.arange(batch.num_steps)
        discounted = np.power(self.gamma, left) * batch.episode_return[trajectory]
        visits = np.bincount(state, minlength=batch.num_nodes)
        value = np.bincount(state, discounted, batch.num_nodes) / np.maximum(visits, 1)
        value[batch.goal_of_group[batch.goal_of_group >= 0]] = self.success_reward
        return value
