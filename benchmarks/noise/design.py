"""Kinds of machine noise that `--merge segments` was designed with, for tests and for timings."""

import html
import json
import random

from benchmarks.noise.disturb import Disturb, VisitRandom, inserted


def _clock(rng: random.Random) -> str:
    return f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}"


def _enveloped(text: str, rng: VisitRandom, index: int) -> str:
    """A tool result with the time that it took and an identifier, keys in any order."""
    fields = {
        "output": text,
        "seconds": round(rng.uniform(0.1, 9), 2),
        "call_id": f"call_{rng.getrandbits(48):012x}",
        "meta": {"created": 1.7e9 + rng.randrange(10**7), "attempt": rng.randrange(1, 4)},
    }
    return json.dumps(dict(rng.sample(list(fields.items()), len(fields))))


def _tagged(text: str, rng: VisitRandom, index: int) -> str:
    """A page of the lines, with classes that no other page has."""
    lines = (
        f'<p class="css-{rng.getrandbits(24):06x}">{html.escape(line)}</p>'
        for line in text.splitlines()
    )
    return f'<main data-key="{rng.getrandbits(32):08x}">\n' + "\n".join(lines) + "\n</main>"


def _metered(text: str, rng: VisitRandom, index: int) -> str:
    """Fuel that runs out, and a temperature."""
    fuel = max(0.0, 60 - 1.5 * index - rng.random() * 2)
    return f"{text}\nFuel: {fuel:.1f} litres. It is {rng.randrange(12, 30)} degrees outside."


def _shell(text: str, rng: VisitRandom, index: int) -> str:
    """A prompt with a host and a folder of the rollout, a time, and how long it took."""
    host, folder = rng.rollout.getrandbits(16), rng.rollout.getrandbits(24)
    prompt = f"agent@box-{host:04x}:/tmp/run-{folder:06x} ({_clock(rng)})$ look"
    return f"{prompt}\n{text}\nreal {rng.random():.3f}s"


_OFFERS = (
    "{percent}% off {thing} until {day}!",
    "Buy two {thing} and get the third for free.",
    "Sponsored: the {adjective} {thing} that everyone loves",
    "Only {number} {thing} left in stock, order now!",
    "New: {adjective} {thing} from {number}.99 a month",
    "Free delivery of {adjective} {thing} on {day}.",
)
_WORDS = {
    "thing": ("running shoes", "garden hoses", "phone cases", "headphones", "yoga mats"),
    "adjective": ("waterproof", "award-winning", "handmade", "organic", "wireless"),
    "day": ("Monday", "Wednesday", "midnight", "Sunday evening"),
}


def _advertised(text: str, rng: VisitRandom, index: int) -> str:
    """Up to three advertisements of many hundreds."""

    def offer() -> str:
        words = {name: rng.choice(choices) for name, choices in _WORDS.items()}
        numbers = {"percent": rng.randrange(5, 75, 5), "number": rng.randrange(2, 60)}
        return rng.choice(_OFFERS).format(**words, **numbers)

    return inserted(text, [offer() for _ in range(rng.randrange(4))], rng)


KINDS: dict[str, Disturb] = {
    function.__name__.removeprefix("_"): function
    for function in (_enveloped, _tagged, _metered, _shell, _advertised)
}
