"""The probability that decisions which do not matter are taken for ones that do."""

from collections.abc import Iterable
from math import lgamma

import numpy as np
from numpy.typing import NDArray

ERRORS = 2.0
"""A decision is said to matter if |Q - V| is above this many standard errors."""

Floats = NDArray[np.float64]


def chance_to_matter(q_plays: int, v_plays: int, shares: Floats) -> Floats:
    """Return how probable it is that Q - V seems to matter although Q = V.

    Exact: summed over all outcomes of the plays, which are binomial with the same share.

    Args:
        q_plays: Plays after the action.
        v_plays: Plays from the state.
        shares: [n] shares of success, of both.

    Returns:
        [n] probabilities.
    """
    q_wins = np.arange(q_plays + 1, dtype=np.float64)[:, None]
    v_wins = np.arange(v_plays + 1, dtype=np.float64)[None, :]
    errors = np.sqrt(_variance(q_wins, q_plays) + _variance(v_wins, v_plays))
    seems = np.abs(q_wins / q_plays - v_wins / v_plays) > ERRORS * errors
    by_v = seems.astype(np.float64) @ _binomial(v_plays, shares)
    return np.asarray((_binomial(q_plays, shares) * by_v).sum(axis=0))


def expected_by_chance(plays: Iterable[tuple[int, int, float, float]]) -> float:
    """Return the share of decisions that would seem to matter if none did.

    The common share of success is not known, so each decision's is estimated from all of its plays.
    Where the action ended the episode, Q = V means that all plays have its outcome, and nothing
    seems to matter.

    Args:
        plays: q_plays, v_plays, q and v of each decision.
    """
    sizes: dict[tuple[int, int], list[float]] = {}
    number = 0
    for q_plays, v_plays, q, v in plays:
        number += 1
        if q_plays > 1:
            wins = q * q_plays + v * v_plays
            sizes.setdefault((q_plays, v_plays), []).append((wins + 1) / (q_plays + v_plays + 2))
    total = 0.0
    for (q_plays, v_plays), shares in sizes.items():
        different, counts = np.unique(np.round(shares, 12), return_counts=True)
        total += float((chance_to_matter(q_plays, v_plays, different) * counts).sum())
    return total / number if number else 0.0


def _variance(wins: Floats, plays: int) -> Floats:
    """Return the variance of a share, as in `collector/replaying/values.py`."""
    shrunk = (wins + 1) / (plays + 2)
    return shrunk * (1 - shrunk) / (plays + 2)


def _binomial(plays: int, shares: Floats) -> Floats:
    """Return [plays + 1, n] probabilities of 0, 1, … wins, for shares above 0 and below 1."""
    wins = np.arange(plays + 1)
    ways = [lgamma(plays + 1) - lgamma(k + 1) - lgamma(plays - k + 1) for k in wins]
    logs = (
        np.array(ways)[:, None]
        + wins[:, None] * np.log(shares)[None, :]
        + (plays - wins)[:, None] * np.log1p(-shares)[None, :]
    )
    return np.asarray(np.exp(logs))
