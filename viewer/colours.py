"""The diverging scale of advantages: safe for colour-blind eyes, neutral at zero."""

_NEGATIVE, _ZERO, _POSITIVE = (0xC0, 0x4F, 0x15), (0xB8, 0xBC, 0xC2), (0x1B, 0x5E, 0xA8)


def diverging(value: float, limit: float) -> str:
    """Return the colour of a value as `#rrggbb`: orange below zero, grey at it, blue above.

    Args:
        value: What to show.
        limit: The value, and minus it, at which the scale ends.
    """
    share = max(-1.0, min(1.0, value / limit)) if limit > 0 else 0.0
    end = _POSITIVE if share > 0 else _NEGATIVE
    mixed = [round(a + (b - a) * abs(share)) for a, b in zip(_ZERO, end, strict=True)]
    return "#" + "".join(f"{channel:02x}" for channel in mixed)
