"""MT-GRPO: the reward of each turn relative to its turn, and the outcome relative to the group."""

from dataclasses import dataclass

import numpy as np

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.parts import episode_part
from graphcredit.credit.estimators.relative import Normalize, relative
from graphcredit.credit.estimators.turns import turn_of_step
from graphcredit.credit.steps.arrays import Floats, discounted_returns
from graphcredit.store.options import Weight


@dataclass(frozen=True, kw_only=True, slots=True)
class MtGrpo:
    """A turn is worth its reward and those of later turns, each relative to the same turn.

        A_o = rel(r_{T-1}; group)
        A_t = Σ_{t≤k<T-1} rel(r_k; trajectories of the group that go on after turn k)
        A   = A_o + λ A_t

    r is `reward`, T the number of turns: the last reward is the outcome, those before it are the
    rewards of turns. With two turns it is the paper's; with more, what widely used code made of it.
    Biased where the policy decides when to stop: how many means are taken off depends on how many
    turns τ takes. Turns whose rewards are below 0 on average are encouraged, others discouraged,
    though they are worth nothing; `turn_rloo` is free of it. A turn that one trajectory goes on
    after has 0. Source: arXiv 2505.11821, Section 4; verl RFC 7244 (more turns, and the bias).
    """

    turn_weight: Weight = 1.0
    """λ."""
    normalize: Normalize = "std"
    """Divide by the standard deviation, or not; in both parts."""

    def assign(self, batch: StepBatch) -> dict[str, Floats]:
        """Return the parts of the advantage, each [num_steps]."""
        last = batch.trajectory_start[1:] - 1
        goes_on = np.ones(batch.num_steps, bool)
        goes_on[last] = False
        turn, num_turns = turn_of_step(batch)
        of_turn = np.zeros(batch.num_steps)
        of_turn[goes_on] = relative(
            batch.reward[goes_on], turn[goes_on], num_turns, normalize=self.normalize
        )
        step = discounted_returns(of_turn, batch.trajectory_start, 1.0)
        episode = episode_part(
            batch, batch.reward[last], normalize=self.normalize, stat_over="trajectories"
        )
        return {
            "step_advantage": step,
            "episode_advantage": episode,
            "advantage": episode + self.turn_weight * step,
        }
