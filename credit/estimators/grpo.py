"""GRPO: one relative return for a whole trajectory."""

from dataclasses import dataclass

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.parts import episode_part
from graphcredit.credit.estimators.relative import Normalize, StatOver
from graphcredit.credit.steps.arrays import Floats


@dataclass(frozen=True, kw_only=True, slots=True)
class Grpo:
    """Every step gets its rollout's return, relative to the group's.

        A = rel(R(τ); group)

    R(τ) is `episode_return`. With `normalize="none"` this is Dr. GRPO's advantage.
    A group of one, or of equal returns, gives 0. Source: GiGPO paper, Eq. 3.
    """

    normalize: Normalize = "std"
    """Divide by the group's standard deviation, or not."""
    stat_over: StatOver = "trajectories"
    """Count each rollout once, as in the paper, or once per step."""

    def assign(self, batch: StepBatch) -> dict[str, Floats]:
        """Return the parts of the advantage, each [num_steps]."""
        advantage = episode_part(
            batch, batch.episode_return, normalize=self.normalize, stat_over=self.stat_over
        )
        return {"episode_advantage": advantage, "advantage": advantage}
