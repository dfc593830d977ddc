"""From where on something is worth a warning."""

from dataclasses import dataclass

from graphcredit.store.options import Count, Share


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditThresholds:
    """The audit's options. Up to a `max_…_share`, what a check finds is reported as INFO only."""

    max_incomplete_share: Share = 0.1
    """Of trajectories that are incomplete."""
    max_singleton_share: Share = 0.2
    """Of groups that have a single trajectory."""
    max_dead_share: Share = 0.5
    """Of groups whose trajectories all have the same return, and no advantage."""
    max_alone_share: Share = 0.5
    """Of steps that start from a state no other step of the group starts from."""
    max_aliased_share: Share = 0.05
    """Of repeated (state, action) pairs that led to several states."""
    min_effective_share: Share = 0.6
    """Effective number of trajectories of a group, weighted by steps, over their number."""
    min_equal_steps: Count = 5
    """Equal trajectories of fewer steps are taken for chance."""
    max_equal_chance: Share = 1e-6
    """Trajectories that sampled equal tokens are copies if the policy gave them less than this."""
    max_mean_advantage: Share = 1e-4
    """|mean| / largest |value| up to which a mean is 0: room for the rounding of 32-bit floats."""
