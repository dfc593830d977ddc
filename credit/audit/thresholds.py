"""The audit's thresholds: what is worth a warning."""

from typing import ClassVar

from graphcredit.store.options import Count, Options, Share


class AuditThresholds(Options):
    """The audit's options. Up to a `max_…_share`, what a check finds is reported as INFO only."""

    owner: ClassVar[str] = "audit"

    max_incomplete_share: Share = 0.1
    """Tolerated share of incomplete rollouts."""
    max_singleton_share: Share = 0.2
    """Tolerated share of groups with one rollout."""
    max_dead_share: Share = 0.5
    """Tolerated share of groups whose rollouts all have the same return, and no advantage."""
    max_alone_share: Share = 0.5
    """Tolerated share of steps that start from a state no other step of the group starts from."""
    max_aliased_share: Share = 0.05
    """Tolerated share of repeated (state, action) pairs that led to several states."""
    min_effective_share: Share = 0.6
    """Least ratio of effective to actual rollouts of a group, weighted by steps."""
    min_equal_steps: Count = 5
    """Ignore equal rollouts of fewer steps: that may be chance."""
    min_early_credit: Share = 0.1
    """Least share of all credit that the first half of long rollouts has; equal shares are 0.5."""
    min_long_steps: Count = 20
    """Steps of a rollout that is long."""
    max_mean_advantage: Share = 1e-4
    """Largest |mean| / largest |value| that counts as a mean of 0: room for 32-bit rounding."""
