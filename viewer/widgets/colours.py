"""Colour scales that are safe for colour-blind readers, on light and dark backgrounds.

Every colour of `diverging` stands out from both backgrounds by at least 3 to 1, as WCAG asks of
marks. Text needs 4.5 to 1, which no colour has on both: see `ink`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import copysign

_NEGATIVE, _ZERO, _POSITIVE = (0xC0, 0x4F, 0x15), (0x8A, 0x8F, 0x98), (0x24, 0x69, 0xB8)
_FAR, _NEAR = (0xF1, 0xEE, 0xE6), (0x4A, 0x46, 0x40)

_DARK = 0.72
"""Share of `sequential` from which on white text stands out better than black."""

NEUTRAL = "#8a8f98"
"""Marks without a value."""

_INKS = {"light": "#4c5260", "dark": "#b5bac5"}


def ink(theme: str | None) -> str:
    """Return the colour of quiet text on the background of a theme, light or dark."""
    return _INKS.get(theme or "light", _INKS["light"])


def diverging(value: float, limit: float) -> str:
    """Return the colour of a value as `#rrggbb`: orange below zero, grey at it, blue above."""
    share = max(-1.0, min(1.0, value / limit)) if limit > 0 else 0.0
    return _mixed(_ZERO, _POSITIVE if share > 0 else _NEGATIVE, abs(share))


def sequential(share: float) -> str:
    """Return the colour of a share as `#rrggbb`: paper at 0, charcoal at 1.

    It has no hue, so no eye mistakes a state for credit or blame.
    """
    return _mixed(_FAR, _NEAR, max(0.0, min(1.0, share)))


def ink_on(share: float) -> str:
    """Return the colour of text on `sequential` of a share."""
    return "#ffffff" if share > _DARK else "#000000"


@dataclass(frozen=True, kw_only=True, slots=True)
class SignedScale:
    """A scale of `diverging` colours whose ends are the least and the greatest of some values.

    Colours go by the square root, so that small values are visible beside great ones.
    """

    low: float
    """The least value, or 0."""
    high: float
    """The greatest value, or 0."""

    @classmethod
    def of(cls, values: Iterable[float | None]) -> "SignedScale":
        """Return the scale of some values."""
        known = [0.0, *(value for value in values if value is not None)]
        return cls(low=min(known), high=max(known))

    def colour(self, value: float | None) -> str:
        """Return the colour of a value."""
        return diverging(self._share(value or 0.0), 1)

    def bar(self, num_colours: int = 13) -> list[str]:
        """Return the colours from one end to the other, for a legend."""
        low, high = self._share(self.low), self._share(self.high)
        steps = (low + (high - low) * step / (num_colours - 1) for step in range(num_colours))
        return [diverging(step, 1) for step in steps]

    def ends(self) -> list[str]:
        """Return both ends as text."""
        return [f"{end:+.2g}" if end else "0" for end in (self.low, self.high)]

    def _share(self, value: float) -> float:
        limit = max(self.high, -self.low)
        return copysign(min(abs(value) / limit, 1.0) ** 0.5, value) if limit else 0.0


def _mixed(start: tuple[int, int, int], end: tuple[int, int, int], share: float) -> str:
    mixed = [round(a + (b - a) * share) for a, b in zip(start, end, strict=True)]
    return "#" + "".join(f"{channel:02x}" for channel in mixed)
