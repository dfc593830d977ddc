"""Kinds of machine noise that judge `--merge segments`, written before its rules."""

import base64
import html
import json
import random
import uuid

from benchmarks.noise.disturb import Disturb, VisitRandom, inserted


def _uuid(rng: random.Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def _letters(rng: random.Random, length: int) -> str:
    return "".join(rng.choices("bcdfghjklmnpqrstvwxz2456789", k=length))


def _iso(rng: random.Random) -> str:
    time = f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}"
    return f"2025-11-{rng.randrange(1, 31):02}T{time}.{rng.randrange(10**6):06}+00:00"


def _api(text: str, rng: VisitRandom, index: int) -> str:
    """The answer of an API with nested ids, a cursor and a hash, keys in any order."""

    def mixed(fields: dict[str, object]) -> dict[str, object]:
        return dict(rng.sample(list(fields.items()), len(fields)))

    items = [
        mixed({"id": _uuid(rng), "line": line, "etag": f'W/"{rng.getrandbits(64):x}"'})
        for line in text.splitlines()
    ]
    request = mixed({"id": f"req_{_letters(rng, 20)}", "ts": rng.randrange(10**12, 2 * 10**12)})
    page: dict[str, object] = {
        "next": base64.b64encode(rng.randbytes(18)).decode(),
        "took_ms": rng.randrange(900),
    }
    return json.dumps(mixed({"request": request, "data": {"items": items}, "page": mixed(page)}))


_WARES = ("Cruises from Hull", "Learn Latin in a week", "The last mattress you buy", "Fibre in all")


def _page(text: str, rng: VisitRandom, index: int) -> str:
    """A whole page with rotating advertisements, a nonce and classes of a build."""
    lines = [
        f'<li class="item_{_letters(rng, 5)}" id="el-{rng.randrange(10**5)}">{html.escape(x)}</li>'
        for x in text.splitlines()
    ]
    for _ in range(rng.randrange(3)):
        url = f"https://ads.example/c?{_letters(rng, 12)}"
        advert = (
            f'<div class="ad-{_letters(rng, 4)}"><a href="{url}">{rng.choice(_WARES)}</a></div>'
        )
        lines.insert(rng.randrange(len(lines) + 1), advert)
    nonce = base64.b64encode(rng.randbytes(12)).decode()
    body = "\n".join(lines)
    footer = f"<footer>Rendered in {rng.randrange(3, 90)} ms by web-{rng.randrange(1, 9)}</footer>"
    return f'<html><body nonce="{nonce}"><ul>\n{body}\n</ul>{footer}</body></html>'


def _pytest(text: str, rng: VisitRandom, index: int) -> str:
    """A run of tests with durations, a seed, a hash, and warnings that come and go."""
    seed, commit = rng.randrange(10**9), f"{rng.getrandbits(28):07x}"
    warning = f"  /srv/app/io.py:{rng.randrange(9, 99)}: ResourceWarning: unclosed <socket fd=7>"
    head = f"===== test session starts =====\nplatform linux, commit {commit}\nseed: {seed}\n"
    body = inserted(text, [warning] if rng.random() < 0.4 else [], rng)
    return f"{head}{body}\n===== 12 passed, 1 failed in {rng.uniform(0.5, 40):.2f}s ====="


def _pod(text: str, rng: VisitRandom, index: int) -> str:
    """The log of a pod, with its name, addresses and heartbeats."""
    pod = f"shop-{_letters(rng.rollout, 9)}-{_letters(rng.rollout, 5)}"
    address = f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(256)}"
    beats = [
        f"{_iso(rng)} I {pod} probe from {address}:{rng.randrange(1024, 65536)} ok"
        for _ in range(rng.randrange(3))
    ]
    body = "\n".join(f"{_iso(rng)} I {pod} {line}" for line in text.splitlines())
    return inserted(body, beats, rng)


def _prompt(text: str, rng: VisitRandom, index: int) -> str:
    """A coloured prompt with a commit that stays for three steps."""
    commit = random.Random(f"{rng.rollout.random()} {index // 3}").getrandbits(28)
    colour = rng.randrange(31, 37)
    return f"\x1b[{colour}mdev\x1b[0m:(main@{commit:07x}) $ cat room.txt\n{text}"


def _top(text: str, rng: VisitRandom, index: int) -> str:
    """What uses the machine, in columns."""
    loads = ", ".join(f"{rng.uniform(0, 4):.2f}" for _ in range(3))
    rows = [
        f"{rng.randrange(1, 99999):>7} root {rng.uniform(0, 99):>5.1f} {rng.randrange(9**6):>8} {x}"
        for x in ("systemd", "postgres", "python3")
    ]
    head = f"up {rng.randrange(1, 60)} days, {rng.randrange(1, 9)} users, load average: {loads}"
    return "\n".join([head, "    PID USER  %CPU      RES COMMAND", *rows, "", text])


def _results(text: str, rng: VisitRandom, index: int) -> str:
    """Counts of a search, and how old its results are."""
    ages = ("just now", "{} seconds ago", "{} minutes ago", "{} hours ago", "{} days ago")
    lines = (
        f"{x} ({rng.choice(ages[1:]).format(rng.randrange(2, 55))})" for x in text.splitlines()
    )
    count = f"About {rng.randrange(1000, 10**6):,} results ({rng.uniform(0.1, 0.9):.2f} seconds)"
    return "\n".join([count, *lines, f"Page {rng.randrange(1, 9)} of {rng.randrange(10, 99)}"])


def _viewed(text: str, rng: VisitRandom, index: int) -> str:
    """A coloured view of a file: line numbers, how much is above and below."""
    start = rng.randrange(1, 900)
    lines = (f"\x1b[2m{at:>4} |\x1b[0m {x}" for at, x in enumerate(text.splitlines(), start))
    above = f"({start - 1} lines above)"
    return "\n".join([above, *lines, f"({rng.randrange(9, 900)} lines below)"])


def _ticker(text: str, rng: VisitRandom, index: int) -> str:
    """Prices that move, and the weather of the hour before."""
    prices = (
        f"{name} {rng.uniform(20, 900):,.2f} ({rng.choice('+-')}{rng.uniform(0, 4):.2f}%)"
        for name in ("ACME", "GLOBX", "INITE")
    )
    return f"{' | '.join(prices)}\n{text}\nBTC ${rng.randrange(20_000, 99_999):,}"


def _debugged(text: str, rng: VisitRandom, index: int) -> str:
    """Addresses in memory, a temporary file, a token, an answer's time."""
    token = base64.urlsafe_b64encode(rng.randbytes(30)).decode()
    file = f"/tmp/tmp{_letters(rng, 8)}/out.log"
    return (
        f"<Observation object at 0x{rng.getrandbits(44):012x}>\n{text}\nsaved to {file}\n"
        f"Authorization: Bearer {token}\nRequest took {rng.uniform(0.01, 2):.2f}s"
    )


def _envelope(text: str, rng: VisitRandom, index: int) -> str:
    """An XML message with identifiers and times in attributes and elements."""
    lines = "".join(
        f'<line n="{_uuid(rng)[:8]}">{html.escape(x)}</line>' for x in text.splitlines()
    )
    head = f'<head sent="{_iso(rng)}"><messageId>urn:uuid:{_uuid(rng)}</messageId></head>'
    return f'<?xml version="1.0"?>\n<message>{head}<body>{lines}</body></message>'


def _sensed(text: str, rng: VisitRandom, index: int) -> str:
    """A temperature and a load that walk about, and what was sent so far."""
    walk = random.Random(f"walk {rng.rollout.random()}")
    heat, load, sent = 40.0, 1.0, 0
    for _ in range(index + 1):
        heat += walk.uniform(-3, 3)
        load = max(0.0, load + walk.uniform(-0.4, 0.4))
        sent += walk.randrange(100, 5000)
    return f"core {heat:.1f}°C, load {load:.2f}, sent {sent:,} bytes\n{text}"


KINDS: dict[str, Disturb] = {
    function.__name__.removeprefix("_"): function
    for function in (
        *(_api, _page, _pytest, _pod, _prompt, _top, _results),
        *(_viewed, _ticker, _debugged, _envelope, _sensed),
    )
}
