"""Select the steps to train on, and count the reasons for leaving out the others."""

from dataclasses import dataclass

import numpy as np

from graphcredit.store.errors import InputError
from graphcredit.trainer.data.credit_columns import CreditRows
from graphcredit.trainer.data.ragged import Floats, Ints
from graphcredit.trainer.data.step_columns import UNKNOWN, StepColumns, version_number

REASONS = (
    "no_tokens",
    "no_credit",
    "degenerate_group",
    "zero_advantage",
    "empty_response",
    "no_finite_logprob",
    "stale",
    "over_long",
)
"""Reasons to leave out a step. If several hold, the first is counted. So the later reasons count
only steps that have a signal."""

KEPT = len(REASONS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Filters:
    """Rules that leave out steps, and changes to the advantages of the others."""

    max_tokens: int
    """A step with more tokens is over-long."""
    policy_version: str | None = None
    """Version of the model. None takes the newest version of a log with several versions, and
    leaves staleness unknown for a log with one."""
    max_staleness: int = 4
    """A step sampled by weights older than this many versions is stale."""
    is_corrected: bool = True
    """The loss allows for the gap between sampler and trainer, or takes ratios against the sampler
    itself; otherwise steps more than one version old are refused."""
    drop_zero_advantage: bool = False
    drop_degenerate_groups: bool = False
    allow_truncated_sampling: bool = False
    """Let steps pass that were sampled with top-p or top-k."""
    whiten_advantages: bool = False
    """Shift and scale the advantages of the kept steps to mean 0 and deviation 1."""
    advantage_clip: float | None = None
    """Clip advantages to this absolute value, after whitening."""

    def check(self) -> None:
        """Raise InputError if the policy version says nothing about the order of versions."""
        if self.policy_version is not None and version_number(self.policy_version) == UNKNOWN:
            raise InputError(
                "a policy version must end in a number, which tells how old a step is: got "
                f"{self.policy_version!r}. Leave --policy-version out if versions are not ordered"
            )

    def staleness(self, columns: StepColumns) -> Ints:
        """Return [n] the number of versions by which the model is newer than each step's sampler.

        It is `UNKNOWN` if one of the versions is unknown, and negative if the step is newer.
        """
        if self.policy_version is None:
            return np.full_like(columns.version, UNKNOWN)
        gap = version_number(self.policy_version) - columns.version
        return np.where(columns.version == UNKNOWN, UNKNOWN, gap)

    def outcome(
        self, columns: StepColumns, credit: CreditRows, num_scored: Ints, staleness: Ints
    ) -> Ints:
        """Return [n] the position in `REASONS` of the reason to leave out a step, or `KEPT`.

        Args:
            columns: The steps.
            credit: Their credit.
            num_scored: [n] response tokens with a finite log-probability.
            staleness: [n] result of the method `staleness`.
        """
        response = columns.tokens.response.lengths
        conditions = [
            columns.is_without_tokens,
            np.isnan(credit.advantage),
            credit.is_degenerate & self.drop_degenerate_groups,
            (credit.advantage == 0) & self.drop_zero_advantage,
            response == 0,
            num_scored == 0,
            staleness > self.max_staleness,
            columns.tokens.prompt.lengths + response > self.max_tokens,
        ]
        return np.select(conditions, np.arange(KEPT), KEPT)

    def refine(self, advantage: Floats) -> Floats:
        """Return [n] the advantages of the kept steps, whitened and clipped by the options."""
        if self.whiten_advantages:
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        if self.advantage_clip is not None:
            advantage = advantage.clip(-self.advantage_clip, self.advantage_clip)
        return advantage
