"""Colour scales that are safe for colour-blind readers, on light and dark backgrounds.

Every colour of `diverging` stands out from both backgrounds by at least 3 to 1, as WCAG asks of
marks. Text needs 4.5 to 1, which no colour has on both: see `ink`.
"""

from collections.abc import Iterable

_NEGATIVE, _ZERO, _POSITIVE = (0xC0, 0x4F, 0x15), (0x8A, 0x8F, 0x98), (0x24, 0x69, 0xB8)
_FAR, _NEAR = (0xE9, 0xE3, 0xF2), (0x6A, 0x3D, 0x9A)


NEUTRAL = "#8a8f98"
"""Marks without a value."""

_INKS = {"light": "#4c5260", "dark": "#b5bac5"}


def ink(theme: str | None) -> str:
    """Return the colour of quiet text on the background of a theme, light or dark."""
    return _INKS.get(theme or "light", _INKS["light"])


def diverging(value: float, limit: float) -> str:
    """Return the colour of a value as `#rrggbb`: orange below zero, grey at it, blue above.

    Args:
        value: The value.
        limit: The scale ends at this value, and at minus this value.
    """
    share = max(-1.0, min(1.0, value / limit)) if limit > 0 else 0.0
    return _mixed(_ZERO, _POSITIVE if share > 0 else _NEGATIVE, abs(share))


def sequential(share: float) -> str:
    """Return the colour of a share as `#rrggbb`: pale violet at 0, deep violet at 1.

    `diverging` has no violet, so states are not mistaken for advantages.
    """
    return _mixed(_FAR, _NEAR, max(0.0, min(1.0, share)))


def colour_limit(values: Iterable[float | None]) -> float:
    """Return the end of a diverging scale: a sixth of the values lies beyond it.

    So a few extreme values do not make all other colours pale.
    """
    sizes = sorted(abs(value) for value in values if value is not None)
    return sizes[len(sizes) * 5 // 6] if sizes else 0.0


def _mixed(start: tuple[int, int, int], end: tuple[int, int, int], share: float) -> str:
    mixed = [round(a + (b - a) * share) for a, b in zip(start, end, strict=True)]
    return "#" + "".join(f"{channel:02x}" for channel in mixed)
