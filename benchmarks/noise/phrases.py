"""Phrases that are said in several ways."""

import random
import re

_PHRASES = (
    ("You are", "You're", "You find yourself"),
    ("to the", "towards the", "in the direction of the"),
    ("You see", "You can see", "Before you is"),
    ("There is", "There's", "One sees"),
)


_CLAUSES = (
    ("You are carrying", "You hold", "Your load is"),
    ("You need", "Should you want", "You look for"),
    ("There is", "You see", "Look, here is"),
    ("leading", "which leads", "heading"),
)


def rephrased(text: str, rng: random.Random, index: int) -> str:
    """Say some clauses in another way, which share words with each other."""
    for phrases in _CLAUSES:
        pattern = "|".join(map(re.escape, phrases))
        text = re.sub(pattern, lambda _, phrases=phrases: rng.choice(phrases), text)
    return text


_OPENINGS = (
    ("You are carrying", "You bear", "On your back there is"),
    ("There is", "Here lies", "Around you there is"),
)


def retold(text: str, rng: random.Random, index: int) -> str:
    """Open some sentences in another way."""
    for phrases in _OPENINGS:
        pattern = re.compile("|".join(map(re.escape, phrases)))
        text = pattern.sub(lambda _, phrases=phrases: rng.choice(phrases), text)
    return text


def reworded(text: str, rng: random.Random, index: int) -> str:
    """Say some phrases in another way."""
    for phrases in _PHRASES:
        pattern = "|".join(map(re.escape, phrases))
        text = re.sub(pattern, lambda _, phrases=phrases: rng.choice(phrases), text)
    return text
