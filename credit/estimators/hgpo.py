"""HGPO: states are compared with their recent past, as far back as it agrees."""

from dataclasses import dataclass

import numpy as np

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.relative import EPSILON, Normalize, relative
from graphcredit.credit.steps.arrays import (
    Floats,
    Ints,
    discounted_returns,
    factorise,
    factorise_pairs,
)
from graphcredit.store.options import Count, Discount, Weight


@dataclass(frozen=True, kw_only=True, slots=True)
class Hgpo:
    """Steps that agree in their last n states are compared by the discounted return that followed.

        G_t = Σ_{k≥t} γ^{k-t} r_k
        a_n = (G_t - mean) / (σ + ε) over the steps whose last n states agree, n = 1 … history + 1
        A   = Σ w_n a_n over the n with a_n ≠ 0,  w_n = (n + 1)^α / (Σ (n + 1)^α + ε)

    r is `reward`, the last n states are those of `state_of_step` up to and with this step's. σ is
    the population's, not the sample's. A cluster of one, or of equal returns, has a_n = 0; so has a
    step with fewer than n states behind it. No n with a_n ≠ 0: A = 0. Source: the baseline of the
    3SPO paper, arXiv 2602.22817.
    """

    gamma: Discount = 0.95
    """γ, discount of the return within a rollout."""
    history: Count = 2
    """How many earlier states are looked at."""
    length_alpha: Weight = 1.0
    """α: how much more a longer agreement counts."""
    normalize: Normalize = "std"
    """Divide by σ, or not."""

    def assign(self, batch: StepBatch) -> dict[str, Floats]:
        """Return the parts of the advantage, each [num_steps]."""
        returns = discounted_returns(batch.reward, batch.trajectory_start, self.gamma)
        weighted, weights = np.zeros(batch.num_steps), np.zeros(batch.num_steps)
        for length, (steps, cluster) in enumerate(_clusters(batch, self.history + 1), 1):
            compared = relative(
                returns[steps],
                cluster,
                int(cluster.max(initial=-1)) + 1,
                normalize=self.normalize,
                std_of="population",
            )
            weight = (length + 1) ** self.length_alpha
            weighted[steps] += weight * compared
            weights[steps] += weight * (compared != 0)
        advantage = weighted / (weights + EPSILON)
        return {"step_advantage": advantage, "advantage": advantage}


def _clusters(batch: StepBatch, longest: int) -> list[tuple[Ints, Ints]]:
    """Return for n = 1 … longest: the steps that have n states, and which of them agree.

    The last n states agree if this step's state does, and the last n - 1 of the step before.
    """
    age = np.arange(batch.num_steps) - batch.trajectory_start[batch.trajectory_of_step]
    cluster_of_step = factorise(batch.state_of_step)[0]
    clusters = [(np.arange(batch.num_steps), cluster_of_step)]
    for length in range(2, longest + 1):
        steps = np.flatnonzero(age >= length - 1)
        before = np.zeros(batch.num_steps, np.int64)
        before[steps] = cluster_of_step[steps - 1]
        cluster, _, _ = factorise_pairs(before[steps], batch.state_of_step[steps])
        cluster_of_step = np.zeros(batch.num_steps, np.int64)
        cluster_of_step[steps] = cluster
        clusters.append((steps, cluster))
    return clusters
