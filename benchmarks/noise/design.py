"""Kinds of machine noise that `--merge segments` was designed with. `judge.py` judges it."""

import html
import json
import random

from benchmarks.noise.disturb import Disturb, VisitRandom


def inserted(text: str, lines: list[str], rng: random.Random) -> str:
    """Return a text with lines at random places between its own."""
    result = text.splitlines()
    for line in lines:
        result.insert(rng.randrange(len(result) + 1), line)
    return "\n".join(result)


def _clock(rng: random.Random) -> str:
    return f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}"


def _timed(text: str, rng: VisitRandom, index: int) -> str:
    """A time, a session that no other visit has, and milliseconds."""
    session = f"Session {rng.getrandbits(32):08x}, {rng.randrange(10, 900)} ms."
    return f"[{_clock(rng)}]\n{text}\n{session}"


def _counted(text: str, rng: VisitRandom, index: int) -> str:
    """The number of steps taken."""
    return f"Step {index} of 30\n{text}"


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


def _coloured(text: str, rng: VisitRandom, index: int) -> str:
    """Some lines are printed in another colour each."""
    return "\n".join(
        f"\x1b[1;{rng.randrange(31, 37)}m{line}\x1b[0m" if rng.random() < 0.5 else line
        for line in text.splitlines()
    )


def _shell(text: str, rng: VisitRandom, index: int) -> str:
    """A prompt with a host and a folder of the rollout, a time, and how long it took."""
    host, folder = rng.rollout.getrandbits(16), rng.rollout.getrandbits(24)
    prompt = f"agent@box-{host:04x}:/tmp/run-{folder:06x} ({_clock(rng)})$ look"
    return f"{prompt}\n{text}\nreal {rng.random():.3f}s"


def _referenced(text: str, rng: VisitRandom, index: int) -> str:
    """Each line has a reference to its element."""
    return "\n".join(f"{line} [ref={rng.getrandbits(20):05x}]" for line in text.splitlines())


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


_LURES = (
    "You are in for a treat: visit our kitchen store!",
    "There is a closed door leading to savings.",
    "You see a key to success at the office.",
    "On the table you see a bargain.",
)


def _lured(text: str, rng: VisitRandom, index: int) -> str:
    """Up to two advertisements in the words of the games."""
    return inserted(text, [rng.choice(_LURES) for _ in range(rng.randrange(3))], rng)


def _babbled(text: str, rng: VisitRandom, index: int) -> str:
    """Up to two lines of words that nobody has seen."""

    def line() -> str:
        return " ".join("".join(rng.choices("abcdefghiklmnoprstuvwy", k=6)) for _ in range(6))

    return inserted(text, [line() for _ in range(rng.randrange(3))], rng)


def _logged(text: str, rng: VisitRandom, index: int) -> str:
    """Lines of a log with times, levels and process ids, between those of the text."""
    messages = ("heartbeat ok", "cache miss for key {:x}", "flushed {} records", "GC took {} ms")

    def entry() -> str:
        message = rng.choice(messages).format(rng.getrandbits(16))
        level = rng.choice(("INFO", "DEBUG", "WARN"))
        date = f"2025-03-{rng.randrange(1, 29):02}T{_clock(rng)}.{rng.randrange(1000):03}Z"
        return f"{date} {level} [pid {rng.randrange(300, 99999)}] {message}"

    return inserted(text, [entry() for _ in range(rng.randrange(4))], rng)


def _named(text: str, rng: VisitRandom, index: int) -> str:
    """A session and a guest that stay for a whole rollout."""
    session, guest = f"{rng.rollout.getrandbits(32):08x}", rng.rollout.randrange(1000, 9999)
    return f"session {session} | user guest-{guest}\n{text}"


def _used(text: str, rng: VisitRandom, index: int) -> str:
    """Use of a machine, in the unit that fits."""
    size = rng.choice((f"{rng.uniform(1, 4):.1f} GB", f"{rng.randrange(300, 1000)} MB"))
    took = rng.choice((f"{rng.uniform(1, 4):.2f}s", f"{rng.randrange(20, 1000)}ms"))
    return f"Memory: {size} of 4 GB, CPU {rng.uniform(0, 100):.1f}%, answered in {took}\n{text}"


def _progressing(text: str, rng: VisitRandom, index: int) -> str:
    """A bar that says how far something is."""
    done = rng.randrange(11)
    return f"[{'#' * done}{'-' * (10 - done)}] {10 * done + rng.randrange(10)}%\n{text}"


def _numbered(text: str, rng: VisitRandom, index: int) -> str:
    """Numbers of the lines of a file in which the text stands anywhere."""
    start = rng.randrange(1, 2000)
    return "\n".join(f"{at:>5}\t{line}" for at, line in enumerate(text.splitlines(), start))


KINDS: dict[str, Disturb] = {
    function.__name__.removeprefix("_"): function
    for function in (
        *(_timed, _counted, _enveloped, _tagged, _metered, _coloured, _shell, _referenced),
        *(_advertised, _lured, _babbled, _logged, _named, _used, _progressing, _numbered),
    )
}
