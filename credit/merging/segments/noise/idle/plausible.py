"""Which values that certain looks differ in may be idle."""

from typing import Any

import numpy as np

from graphcredit.credit.merging.segments.counts.tally import observe
from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.noise.idle.claims import Claims
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.steps.arrays import Bools

_STATES = 3
"""So many states must be seen with two values."""
_LEAST_RATIO = 0.5
"""Certain looks must differ at least so much as others do."""


def plausible(
    claims: Claims[Any], parsed: Parsed, visits: Visits, *, is_certain: bool = True
) -> Bools:
    """Return [num_claims] whether looks at one state differ as others do, and nothing says why.

    Neither actions nor success may speak against it.

    Args:
        claims: What may be idle.
        parsed: The texts of the nodes.
        visits: All visits of these nodes.
        is_certain: Whether their classes are; if not, it is enough that looks differ.
    """
    counts = observe(parsed, visits, claims.of_segment, len(claims.things))
    varies = (not is_certain) | np.where(
        counts.expected >= 1,
        counts.observed >= _LEAST_RATIO * counts.expected,
        counts.loose_observed >= _LEAST_RATIO * counts.loose_expected,
    )
    return (counts.disagree >= _STATES) & varies & ~(counts.is_driven | counts.decides)
