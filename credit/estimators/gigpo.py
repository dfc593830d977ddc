"""GiGPO: the return of the episode, and the return from each shared state."""

from dataclasses import dataclass

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.parts import episode_part, state_part
from graphcredit.credit.estimators.relative import Normalize, StatOver
from graphcredit.credit.steps.arrays import Floats, discounted_returns
from graphcredit.store.options import Discount, Weight


@dataclass(frozen=True, kw_only=True, slots=True)
class Gigpo:
    """Steps that start from the same state are compared by the discounted return that followed.

        G_t = Σ_{k≥t} γ^{k-t} r_k
        A_E = rel(R(τ); group)          `episode_advantage`
        A_S = rel(G_t; state group)     `step_advantage`
        A   = A_E + ω A_S

    R(τ) is `episode_return`, r is `reward`, a state group is equal `state_of_step`. A state that
    was left once has A_S = 0. The paper's "w/o std" is `normalize="none"`, for both parts.
    Source: GiGPO paper, Eq. 5-8.
    """

    gamma: Discount = 0.95
    """γ, discount of the return within a rollout."""
    omega: Weight = 1.0
    """ω, weight of the step part."""
    normalize: Normalize = "std"
    """Divide by the standard deviation, or not."""
    stat_over: StatOver = "trajectories"
    """For the episode part: count each rollout once, or once per step."""

    def assign(self, batch: StepBatch) -> dict[str, Floats]:
        """Return the parts of the advantage, each [num_steps]."""
        episode = episode_part(
            batch, batch.episode_return, normalize=self.normalize, stat_over=self.stat_over
        )
        returns = discounted_returns(batch.reward, batch.trajectory_start, self.gamma)
        step = state_part(batch, returns, normalize=self.normalize)
        return {
            "step_advantage": step,
            "episode_advantage": episode,
            "advantage": episode + self.omega * step,
        }
