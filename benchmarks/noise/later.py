"""Kinds of noise that were written after `--merge segments` was finished, all at once.

Nothing in it may be changed with them in view.
"""

import html
import json
import random
import re

from benchmarks.noise.disturb import Disturb


def _loaded(text: str, rng: random.Random, index: int) -> str:
    """A terminal that says how far it is, in its own signs."""
    sign = rng.choice("⠋⠙⠹⠸⠼⠴")
    dots = rng.choice(("…", "...", ""))
    return f"{sign} Loading{dots} done ({rng.uniform(0.1, 9):.1f}s)\n{text}"


def _weather(text: str, rng: random.Random, index: int) -> str:
    """A field with a number and a word, drawn at each look."""
    sky = rng.choice(("cloudy", "clear", "light rain", "fog", "windy"))
    return f"{text}\nWeather: {rng.randrange(-5, 35)}°C, {sky}"


def _hedged(text: str, rng: random.Random, index: int) -> str:
    """Sentences begin as those of somebody who is not sure."""
    openings = ("It seems that ", "Apparently, ", "As far as you can tell, ", "I think ")

    def hedge(found: re.Match[str]) -> str:
        return rng.choice(openings) + found[0].lower() if rng.random() < 0.3 else found[0]

    return re.sub(r"(?m)(?:^|(?<=[.!?] ))[A-Z](?=[a-z ])", hedge, text)


def _articles(text: str, rng: random.Random, index: int) -> str:
    """Articles are exchanged for other words."""
    others = {"a": ("a", "one", "some"), "the": ("the", "that", "this")}
    return re.sub(r"\b(?:a|the)\b", lambda found: rng.choice(others[found[0]]), text)


def _inverted(text: str, rng: random.Random, index: int) -> str:
    """Half of the sentences that say what is on something begin with the place."""

    def invert(found: re.Match[str]) -> str:
        if rng.random() < 0.5:
            return found[0]
        place = found[3].capitalize()
        return f"{place} {found[1].lower()} {found[2]}."

    return re.sub(r"\b(There is|You see) ([^.\n]+?) (on the [\w ]+)\.", invert, text)


def _contracted(text: str, rng: random.Random, index: int) -> str:
    """Two words are said as one, or not."""
    pattern = r"\b([Yy]ou|[Tt]here|[Ii]t|[Tt]hat)( a| i)(re|s)\b"
    return re.sub(
        pattern, lambda found: f"{found[1]}'{found[3]}" if rng.random() < 0.5 else found[0], text
    )


def _page(text: str, rng: random.Random, index: int) -> str:
    """A whole page: a nonce, links in any order, a paragraph for each line."""
    links = [
        f'<a href="/{name}?t={rng.getrandbits(20)}">{name}</a>' for name in ("home", "map", "bag")
    ]
    rng.shuffle(links)
    body = "".join(f"<p>{html.escape(line)}</p>" for line in text.splitlines() if line)
    nonce = f'<script nonce="{rng.getrandbits(64):x}">start({rng.randrange(10**6)})</script>'
    return (
        f"<html><head><title>Game</title>{nonce}</head><body>{''.join(links)}{body}</body></html>"
    )


def _patch(text: str, rng: random.Random, index: int) -> str:
    """The lines as additions of a patch."""
    start = rng.randrange(1, 400)
    lines = text.splitlines()
    added = "\n".join(f"+{line}" for line in lines)
    return f"@@ -{start},{rng.randrange(9)} +{start},{len(lines)} @@\n{added}"


def _tool(text: str, rng: random.Random, index: int) -> str:
    """The result of a tool call, at times with warnings."""
    warnings = ("slow network", "cache miss", "clock skew", "retry")
    fields: dict[str, object] = {
        "tool_call_id": f"call_{rng.getrandbits(64):016x}",
        "name": "look",
        "result": text,
        "elapsed": round(rng.random(), 3),
    }
    if rng.random() < 0.3:
        fields["warnings"] = rng.sample(warnings, rng.randrange(1, 3))
    return json.dumps(fields)


def _paged(text: str, rng: random.Random, index: int) -> str:
    """A page number above, and who was there last below."""
    pages = rng.randrange(2, 30)
    unit = rng.choice(("seconds", "minutes", "hours"))
    last = f"Last updated {rng.randrange(2, 59)} {unit} ago by user_{rng.randrange(10**4)}"
    return f"Page {rng.randrange(1, pages + 1)} of {pages}\n{text}\n{last}"


def _starred(text: str, rng: random.Random, index: int) -> str:
    """Words are emphasised as in Markdown."""

    def star(found: re.Match[str]) -> str:
        mark = rng.choice(("**", "_", "`"))
        return f"{mark}{found[0]}{mark}" if rng.random() < 0.15 else found[0]

    return re.sub(r"\b[a-z]{4,}\b", star, text)


def _hasty(text: str, rng: random.Random, index: int) -> str:
    """Letters are doubled, left out or written in capitals."""

    def slip(found: re.Match[str]) -> str:
        word = found[0]
        if rng.random() > 0.03:
            return word
        place = rng.randrange(1, len(word))
        letter = rng.choice(("", word[place] * 2, word[place].upper()))
        return word[:place] + letter + word[place + 1 :]

    return re.sub(r"[a-z]{4,}", slip, text)


def _padded(text: str, rng: random.Random, index: int) -> str:
    """Lines are indented, and end in blanks."""
    return "\n".join(
        rng.choice(("", " ", "  ", "\t", "    ")) + line + " " * rng.randrange(3)
        for line in text.splitlines()
    )


def _ranked(text: str, rng: random.Random, index: int) -> str:
    """Results of a search in any order, with scores and links."""
    lines = [line for line in text.splitlines() if line]
    rng.shuffle(lines)
    return "\n".join(
        f"{place}. {line} - score {rng.random():.3f} - https://example.org/r?id={rng.getrandbits(32):08x}"
        for place, line in enumerate(lines, 1)
    )


def _passers_by(text: str, rng: random.Random, index: int) -> str:
    """An animal is seen at a random line in six of ten looks."""
    if rng.random() > 0.6:
        return text
    kinds = ("grey", "tired", "tiny", "noisy", "spotted", "wet", "lame", "old")
    animals = ("goose", "fox", "hedgehog", "pony", "crow", "lizard", "hare", "goat")
    deeds = ("sleeps", "eats", "hums", "waits", "jumps")
    lines = text.splitlines()
    seen = f"A {rng.choice(kinds)} {rng.choice(animals)} {rng.choice(deeds)} nearby."
    lines.insert(rng.randrange(len(lines) + 1), seen)
    return "\n".join(lines)


_THOUGHTS = (
    *("maybe", "then", "first", "look", "where", "key", "door", "again", "so", "what", "if"),
    *("wait", "hmm", "now", "plan", "go", "back"),
)


def _thinking(text: str, rng: random.Random, index: int) -> str:
    """Thoughts in a tag, before what is seen."""
    words = rng.choices(_THOUGHTS, k=rng.randrange(5, 20))
    return f"<think>{' '.join(words)}</think>\n{text}"


KINDS: dict[str, Disturb] = {
    "loaded": _loaded,
    "weather": _weather,
    "hedged": _hedged,
    "articles": _articles,
    "inverted": _inverted,
    "contracted": _contracted,
    "page": _page,
    "patch": _patch,
    "tool": _tool,
    "paged": _paged,
    "starred": _starred,
    "hasty": _hasty,
    "padded": _padded,
    "ranked": _ranked,
    "passers-by": _passers_by,
    "thinking": _thinking,
}
