"""Advertisements between the lines of a text, and changes of its layout."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.noise.disturb import Disturb

_OFFERS = (
    "{percent}% off {thing} until {day}",
    "Buy two {thing} and get the third for free",
    "Sponsored: the {adjective} {thing} that {person} loves",
    "Only {number} {thing} left in stock, order now",
    "Subscribe to our newsletter about {thing}",
    "New: {adjective} {thing} from {number}.99 a month",
    "{person} near you bought {number} {thing} this week",
    "Tired of old {thing}? Try ours for {number} days",
    "Rated {number} of 5 by owners of {thing}",
    "Free delivery of {adjective} {thing} on {day}",
)
_WORDS = {
    "thing": [
        "running shoes",
        "garden hoses",
        "phone cases",
        "office chairs",
        "headphones",
        "protein bars",
        "travel bags",
        "desk lamps",
        "cat toys",
        "coffee beans",
        "yoga mats",
        "board games",
    ],
    "adjective": [
        "waterproof",
        "award-winning",
        "handmade",
        "organic",
        "wireless",
        "limited",
        "smart",
    ],
    "person": [
        "everyone",
        "your neighbour",
        "a dentist",
        "Maria",
        "Coach Tom",
        "one in three people",
    ],
    "day": [
        "Monday",
        "Wednesday",
        "Friday",
        "midnight",
        "Sunday evening",
    ],
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Noise:
    """How much a text is disturbed."""

    name: str
    """Name in tables."""
    advertisements: float
    """Mean number of advertisements in a text."""
    layout: float
    """Share of texts whose layout changes."""


STRENGTHS: tuple[Noise, ...] = (
    Noise(name="light", advertisements=0.25, layout=0.1),
    Noise(name="medium", advertisements=0.5, layout=0.25),
    Noise(name="heavy", advertisements=1.0, layout=0.5),
    Noise(name="extreme", advertisements=3.0, layout=1.0),
)


def advertisement(rng: random.Random) -> str:
    """Return one of some 5,000 advertisements."""
    words = {name: rng.choice(choices) for name, choices in _WORDS.items()}
    numbers = {"percent": rng.randrange(5, 75, 5), "number": rng.randrange(2, 60)}
    return rng.choice(_OFFERS).format(**words, **numbers) + rng.choice(("!", ".", "!!!"))


def _shouted(text: str, rng: random.Random) -> str:
    return text.upper()


def _bulleted(text: str, rng: random.Random) -> str:
    return "\n".join(f"* {line}" for line in text.splitlines())


def _spaced(text: str, rng: random.Random) -> str:
    return "\n\n".join(line.replace(" ", " " * rng.randrange(1, 4)) for line in text.splitlines())


def _on_one_line(text: str, rng: random.Random) -> str:
    return " | ".join(text.splitlines())


def _framed(text: str, rng: random.Random) -> str:
    return f"```\n{text}\n```"


LAYOUTS: tuple[Callable[[str, random.Random], str], ...] = (
    _shouted,
    _bulleted,
    _spaced,
    _on_one_line,
    _framed,
)


def advertised(noise: Noise) -> Disturb:
    """Return a noise that inserts advertisements between lines and sometimes changes the layout."""

    def disturb(text: str, rng: random.Random, index: int) -> str:
        lines = text.splitlines()
        whole, rest = divmod(noise.advertisements, 1)
        for _ in range(int(whole) + (rng.random() < rest)):
            lines.insert(rng.randrange(len(lines) + 1), advertisement(rng))
        text = "\n".join(lines)
        return rng.choice(LAYOUTS)(text, rng) if rng.random() < noise.layout else text

    return disturb
