"""The data of the component of tokens: the text of each, marked by its probability."""

from collections.abc import Sequence
from math import exp
from typing import Any

from graphcredit.viewer.widgets.text import visible

MOST_TOKENS = 4_000
"""Most tokens of one response to draw."""


_BANDS = (
    (0.9, "p ≥ 0.9"),
    (0.5, "0.5 to 0.9"),
    (0.1, "0.1 to 0.5"),
    (0.01, "0.01 to 0.1"),
    (0.0, "p < 0.01"),
)
"""Least probability of each band, and its words; the component has a colour and a line for each."""


def drawn_tokens(
    texts: Sequence[str], ids: Sequence[int], logprobs: Sequence[float] | None
) -> dict[str, Any]:
    """Return the data of the component.

    Args:
        texts: What each token adds to the text.
        ids: The token ids.
        logprobs: Their log-probabilities, if they were logged.
    """
    known = logprobs if logprobs is not None else [None] * len(ids)
    tokens = [
        {
            "text": visible(text),
            "about": _about(position, token, logprob),
            "band": None if logprob is None else band(logprob),
        }
        for position, (text, token, logprob) in enumerate(
            zip(texts, ids[:MOST_TOKENS], known, strict=False)
        )
    ]
    return {"tokens": tokens, "legend": [] if logprobs is None else [words for _, words in _BANDS]}


def band(logprob: float) -> int:
    """Return the band of a log-probability, 0 for the likely; NaN counts as the least likely."""
    probability = 1.0 if logprob > 0 else exp(logprob)
    bands = (number for number, (least, _) in enumerate(_BANDS) if probability >= least)
    return next(bands, len(_BANDS) - 1)


def _about(position: int, token: int, logprob: float | None) -> str:
    said = f"token {position}: id {token}"
    return said if logprob is None else f"{said}, log-probability {logprob:.3f}"
