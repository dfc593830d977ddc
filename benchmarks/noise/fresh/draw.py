"""What the kinds draw: identifiers, and values that last."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from benchmarks.noise.disturb import VisitRandom

T = TypeVar("T")

_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
START = datetime(2026, 3, 2, tzinfo=UTC)


def hexadecimal(rng: random.Random, digits: int) -> str:
    """Return a random hexadecimal number."""
    return f"{rng.getrandbits(4 * digits):0{digits}x}"


def random_token(rng: random.Random, length: int) -> str:
    """Return random letters and digits."""
    return "".join(rng.choices(_BASE62, k=length))


def life_of(rng: VisitRandom) -> random.Random:
    """Return a generator that gives the same numbers at each visit of a rollout."""
    return random.Random(rng.rollout.getrandbits(64))


def held(
    life: random.Random, index: int, looks: tuple[int, int], draw: Callable[[random.Random], T]
) -> T:
    """Return the present value of something that is drawn anew whenever it lasted some looks."""
    value, left = draw(life), life.randint(*looks)
    for _ in range(index):
        left -= 1
        if left == 0:
            value, left = draw(life), life.randint(*looks)
    return value


def elapsed(life: random.Random, index: int, low: int, high: int) -> int:
    """Return the sum of what each look so far of a rollout took."""
    return sum(life.randint(low, high) for _ in range(index + 1))


def among(lines: list[str], rng: random.Random, added: Sequence[str]) -> str:
    """Return the lines with others added between them at random places."""
    for line in added:
        lines.insert(rng.randint(0, len(lines)), line)
    return "\n".join(lines)
