"""What a step took, where its log says so: tokens, time and money."""

from collections.abc import Iterator, Mapping
from typing import Any

_READ = ("input_tokens", "prompt_tokens", "promptTokenCount", "prompt_token_count", "inputTokens")
_WRITTEN = (
    *("output_tokens", "completion_tokens", "candidatesTokenCount", "candidates_token_count"),
    "outputTokens",
)
_CACHED = ("cache_read_input_tokens", "cache_creation_input_tokens")
"""Tokens that were read besides those of `input_tokens`."""
_COSTS = ("cost", "cost_usd", "response_cost", "total_cost", "costUSD")
_INSIDE = ("usage", "metrics", "usage_metadata", "usageMetadata", "extra", "response", "message")
_SECOND = 1_000_000


def measures(
    message: Any, *, sampled: tuple[int, int] | None, microseconds: int | None
) -> tuple[str, ...]:
    """Return what a step took, each as a few words."""
    fields = list(_fields(message, 4))
    tokens = sampled or (_read(fields), _number(fields, _WRITTEN))
    said: list[str] = []
    if tokens[1] is not None:
        said.append(f"{tokens[0] or 0:,.0f} → {tokens[1]:,.0f} tokens")
    if microseconds is not None and microseconds > 0:
        said.append(_time(microseconds / _SECOND))
    if (cost := _number(fields, _COSTS)) is not None:
        said.append(f"${cost:.2g}")
    return tuple(said)


def _read(fields: list[Mapping[str, Any]]) -> float | None:
    read = _number(fields, _READ)
    cached = (_number(fields, (name,)) or 0 for name in _CACHED)
    return None if read is None else read + sum(cached)


def _number(fields: list[Mapping[str, Any]], names: tuple[str, ...]) -> float | None:
    """Return the first such number of a message; negative ones mean nothing here."""
    values = (each.get(name) for each in fields for name in names)
    return next(
        (v for v in values if isinstance(v, int | float) and v is not True and 0 <= v < 1e15), None
    )


def _fields(value: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping) and depth:
        yield value
        for name in _INSIDE:
            yield from _fields(value.get(name), depth - 1)


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.2g} s"
    minutes, hours = seconds / 60, seconds / 3600
    return f"{minutes:.0f} min" if minutes < 100 else f"{hours:,.0f} h"
