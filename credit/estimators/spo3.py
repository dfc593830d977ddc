"""3SPO: states that are new or hard are worth visiting, and leaving them for easier ones pays."""

from dataclasses import dataclass

import numpy as np

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.parts import state_part
from graphcredit.credit.estimators.relative import EPSILON, Normalize
from graphcredit.credit.inputs.run_history.before import Past
from graphcredit.credit.steps.arrays import Floats, Ints, factorise_pairs
from graphcredit.store.options import Count, Discount, Weight


@dataclass(frozen=True, kw_only=True, slots=True)
class Spo3:
    """A step is worth its novelty, the drop in its state's score, and success at the end.

        p = k / (n + 1e-6)
        S(s) = 1 if n = 0;  0 if n - k ≥ ξ and p ≤ ζ (intractable);  else exp(-α ln(T) p)
        w = 0.5 · exp(-ω_k n(s_t))
        step reward = w·[s_{t+1} ≠ s_t] + (0.5 - w)·(S(s_t) - S(s_{t+1})) + 0.5·[τ ends in success]
        A = rel(step reward; state group)

    n(s) and k(s) count the rollouts of the run, and the successful ones, that acted in s and
    ended before this one did: those of earlier iterations are in `past`, those of this iteration
    are counted here in the order of `past.num_ended_before`. The state that a last step leads to
    does not count; S is 1 where nobody acted, as at the goal. T is 1 + `past.num_ended_before`. A
    rollout sees neither itself nor the future. Source: 3SPO paper, Eq. 1-4.
    """

    alpha: Weight = 1.0
    """α: 1 reproduces the paper's case study; its table lists 50, in units it does not fix."""
    xi: Count = 10
    """ξ: with this many failures a state may be intractable."""
    zeta: Discount = 0.1
    """ζ: the success rate up to which it then is."""
    omega_k: Weight = 0.1
    """ω_k: how fast novelty wears off with visits."""
    g_max: Count = 8
    """G_max: rollouts to allocate at a state of score 1."""
    normalize: Normalize = "std"
    """Divide by the standard deviation, or not."""

    def score(self, num_total: Ints, num_success: Ints, num_ended: Ints) -> Floats:
        """Return S of states.

        Args:
            num_total: [n] trajectories that acted in the state, the paper's n.
            num_success: [n] successful ones among them, k.
            num_ended: [n] trajectories of the run that have ended: T - 1.
        """
        share = num_success / (num_total + EPSILON)
        is_intractable = (num_total - num_success >= self.xi) & (share <= self.zeta)
        score = np.exp(-self.alpha * np.log(1 + num_ended) * share)
        return np.where(num_total == 0, 1.0, np.where(is_intractable, 0.0, score))

    def num_rollouts(self, score: Floats) -> Ints:
        """Return how many rollouts to start at states: none truncates, one goes on, more branch."""
        return np.ceil(self.g_max * score).astype(np.int64)

    def assign(self, batch: StepBatch) -> dict[str, Floats]:
        """Return the parts of the advantage, each [num_steps].

        Raises:
            InputError: The batch was made without the past.
        """
        past: Past = batch.input("past")
        visits = _Visits.count(batch, past)
        ended = past.num_ended_before[visits.trajectory]
        score = self.score(visits.num_total, visits.num_success, ended)
        novelty = 0.5 * np.exp(-self.omega_k * visits.num_total[visits.of_state])
        last = batch.trajectory_start[1:] - 1
        is_won = np.zeros(batch.num_steps, bool)
        is_won[last] = batch.is_success
        reward = (
            novelty * (batch.target_of_step != batch.state_of_step)
            + (0.5 - novelty) * (score[visits.of_state] - score[visits.of_target])
            + 0.5 * is_won
        )
        step = state_part(batch, reward, normalize=self.normalize)
        return {"step_reward": reward, "step_advantage": step, "advantage": step}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Visits:
    """Each pair of a rollout and a node it saw, with the counts at the time it ended."""

    trajectory: Ints
    """[num_pairs]."""
    num_total: Ints
    """[num_pairs] n of the node."""
    num_success: Ints
    """[num_pairs] k of the node."""
    of_state: Ints
    """[num_steps] the pair of the step's rollout and state."""
    of_target: Ints
    """[num_steps] the pair of the step's rollout and target."""

    @classmethod
    def count(cls, batch: StepBatch, past: Past) -> "_Visits":
        pair_of_visit, trajectory, node = factorise_pairs(
            np.tile(batch.trajectory_of_step, 2),
            np.concatenate([batch.state_of_step, batch.target_of_step]),
        )
        has_acted = np.zeros(len(node), np.int64)
        has_acted[pair_of_visit[: batch.num_steps]] = 1
        order = np.lexsort((past.num_ended_before[trajectory], node))
        first = np.flatnonzero(np.diff(node[order], prepend=-1))
        run = np.repeat(first, np.diff(np.append(first, len(node))))

        def count_before(values: Ints) -> Ints:
            """Sum up, for each pair, the values of those that ended earlier at its node."""
            earlier = np.cumsum(values[order]) - values[order]
            counts = np.empty_like(earlier)
            counts[order] = earlier - earlier[run]
            return counts

        return cls(
            trajectory=trajectory,
            num_total=count_before(has_acted) + past.num_total[node],
            num_success=count_before(has_acted * batch.is_success[trajectory])
            + past.num_success[node],
            of_state=pair_of_visit[: batch.num_steps],
            of_target=pair_of_visit[batch.num_steps :],
        )
