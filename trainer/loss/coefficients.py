"""Coefficients of divergence and entropy bonus that adapt from update to update."""

from collections.abc import Mapping
from dataclasses import dataclass

from graphcredit.trainer.options import LossOptions

_MOST = 0.2
"""Most relative error of the divergence that counts in one update."""
_GAIN = 0.1
"""Relative change of its coefficient per relative error."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Coefficients:
    """The coefficients of an update, from the means of the update before.

    With `kl_target`, after an update of mean divergence KL:

        c_KL ← c_KL (1 + 0.1 clip(KL / target - 1, ±0.2))

    With `entropy_target`, after an update of mean entropy H, the bonus is on while H is low:

        α ← max(α + step, 0) where H < target, else max(α - step, 0)
        c_H = α if H ≤ target, else 0

    Sources: Ziegler et al., arXiv 1909.08593; Skywork-OR1, arXiv 2505.22312.
    """

    kl: float
    """c_KL."""
    entropy: float
    """α."""
    is_entropy_low: bool = True
    """Whether the last H was at most the target; true without one."""

    @property
    def entropy_bonus(self) -> float:
        """c_H."""
        return self.entropy if self.is_entropy_low else 0.0

    def after(self, options: LossOptions, seen: Mapping[str, float]) -> "Coefficients":
        """Return the next update's coefficients.

        Args:
            options: Targets and step.
            seen: Means of the update: `kl` and `entropy`, if it has them.
        """
        kl, entropy, is_low = self.kl, self.entropy, self.is_entropy_low
        if options.kl_target is not None:
            error = min(max(float(seen["kl"]) / options.kl_target - 1, -_MOST), _MOST)
            kl *= 1 + _GAIN * error
        if options.entropy_target is not None:
            found, step = float(seen["entropy"]), options.entropy_step
            entropy = max(entropy + (step if found < options.entropy_target else -step), 0.0)
            is_low = found <= options.entropy_target
        return Coefficients(kl=kl, entropy=entropy, is_entropy_low=is_low)


def first_coefficients(options: LossOptions) -> Coefficients:
    """Return the coefficients of the first update."""
    return Coefficients(kl=options.kl_coefficient, entropy=options.entropy_coefficient)
