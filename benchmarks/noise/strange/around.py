"""Noise around a text: what an agent's program, a browser or somebody else says beside it."""

from benchmarks.noise.disturb import VisitRandom


def usage(text: str, rng: VisitRandom, index: int) -> str:
    """The result of a tool, and statistics of usage which grow with the rollout."""
    read, written = 900 + 210 * index + rng.randrange(80), rng.randrange(12, 300)
    fields = {
        "model": rng.rollout.choice(("atlas-small", "atlas-large", "atlas-large-2")),
        "input_tokens": read,
        "output_tokens": written,
        "cache_read": rng.choice((0, read // 2)),
        "cost_usd": f"{(read * 3 + written * 15) / 1e6:.6f}",
        "stop_reason": rng.choice(("tool_use", "end_turn")),
    }
    attributes = " ".join(f'{name}="{value}"' for name, value in fields.items())
    return f"<result>\n{text}\n</result>\n<usage {attributes}/>"


_SITES = ("Inbox", "Calendar", "News", "Forum", "Weather", "Docs", "Maps", "Shop")


def tabs(text: str, rng: VisitRandom, index: int) -> str:
    """Tabs of a browser: a set for the rollout, at times one more; counts of what is unread."""
    names: list[str] = rng.rollout.sample(_SITES, rng.rollout.randrange(1, 5))
    if rng.random() < 0.2:
        names.append(rng.choice(_SITES))
    names.insert(rng.randrange(len(names) + 1), "*Adventure")

    def unread(name: str) -> str:
        if name in ("Inbox", "Forum") and rng.random() < 0.8:
            return f" ({rng.randrange(1, 40)})"
        return ""

    shown = [f"[{place}] {name}{unread(name)}" for place, name in enumerate(names)]
    return f"Open tabs: {'  '.join(shown)}\n{text}"


_MOODS = {
    "cheerful": ("This is fun, keep going!", "Ha, nice one.", "I love this place."),
    "impatient": ("Can you hurry up?", "Why does this take so long?", "Faster, please."),
    "worried": ("Are you sure this is right?", "I hope we do not break anything.", "Careful..."),
    "bored": ("Whatever.", "Is it over yet?", "Fine, do what you like."),
}


def mood(text: str, rng: VisitRandom, index: int) -> str:
    """A user's mood lasts several turns, and what is said follows from it."""
    felt = rng.rollout.choice(list(_MOODS))
    for _ in range(index):
        if rng.rollout.random() < 0.2:
            felt = rng.rollout.choice(list(_MOODS))
    said = rng.choice(_MOODS[felt])
    return f"{text}\nUser ({felt}): {said}" if rng.random() < 0.8 else text


def turns(text: str, rng: VisitRandom, index: int) -> str:
    """A turn's number and how many are left, of a limit that is dealt for a rollout."""
    limit = rng.rollout.choice((30, 40, 50))
    left = limit - index
    hurry = " Last turns!" if left <= 5 else ""
    unit = "turn" if left == 1 else "turns"
    return f"=== Turn {index + 1}/{limit} ({left} {unit} left){hurry} ===\n{text}"


_MODULES = ("env", "client", "tools", "loop")
_FUNCTIONS = ("step", "call", "_send", "run", "look")
_STATEMENTS = (
    "return self._send(message)",
    "raise error",
    "result = await call()",
    "self.cache[key]",
)
_ERRORS = (
    "TimeoutError: timed out",
    "ConnectionResetError: [Errno 104] Connection reset by peer",
    "KeyError: 'cache'",
    "BrokenPipeError: [Errno 32] Broken pipe",
    "ValueError: expected str, got None",
)


def trace(text: str, rng: VisitRandom, index: int) -> str:
    """A stack trace of two to four frames in four of ten looks, above or below."""
    if rng.random() > 0.4:
        return text

    def frame() -> str:
        place = f'"/opt/agent/{rng.choice(_MODULES)}.py", line {rng.randrange(9, 900)}'
        return f"  File {place}, in {rng.choice(_FUNCTIONS)}\n    {rng.choice(_STATEMENTS)}\n"

    frames = "".join(frame() for _ in range(rng.randrange(2, 5)))
    error = f"{rng.choice(_ERRORS)} (retried {rng.randrange(1, 4)}x)"
    told = f"Traceback (most recent call last):\n{frames}{error}"
    return f"{told}\n{text}" if rng.random() < 0.5 else f"{text}\n{told}"


def budget(text: str, rng: VisitRandom, index: int) -> str:
    """A budget of tokens that runs out, with a level in words."""
    total = rng.rollout.choice((16000, 32000, 64000))
    left = total - int(total * min(0.99, (index + rng.random()) / 34))
    level = "critical"
    if left > 0.25 * total:
        level = "plenty" if left > 0.6 * total else "moderate"
    said = f"{left:,} of {total:,} tokens left ({100 * left // total}%) - {level}"
    return f"{text}\n<budget:token_budget>{said}</budget:token_budget>"


_TITLES = (
    *("Sale ends soon", "Dana commented on your post", "Backup finished", "New login from Lisbon"),
    *("Your parcel is on its way", "Meeting in 10 minutes", "Battery low"),
)


def badges(text: str, rng: VisitRandom, index: int) -> str:
    """Badges whose counts go up; at times a notification between lines."""
    count = rng.rollout.randrange(4) + sum(rng.rollout.random() < 0.4 for _ in range(index))
    lines = text.splitlines()
    if rng.random() < 0.35:
        place = rng.randrange(len(lines) + 1)
        title, age = rng.choice(_TITLES), rng.choice(("now", "1m", "2m", "5m"))
        lines.insert(place, f"🔔 {title} · {age}")
    messages = f"Messages ({count})" if count else "Messages"
    return "\n".join([f"Home  {messages}  Alerts{rng.choice(('', ' *'))}", *lines])


_QUOTES = (
    ("The journey of a thousand miles begins with one step.", "Lao Tzu"),
    ("Know thyself.", "Socrates"),
    ("Simplicity is the ultimate sophistication.", "Leonardo"),
    ("Fortune favours the bold.", "Virgil"),
    ("All that glitters is not gold.", "Shakespeare"),
    ("Time is money.", "Franklin"),
    ("What we think, we become.", "Buddha"),
    ("Nothing is permanent except change.", "Heraclitus"),
    ("He who has a why can bear any how.", "Nietzsche"),
    ("The door is open; walk through it.", "Anonymous"),
    ("You see only what you look for.", "Anonymous"),
    ("Haste makes waste.", "Proverb"),
)


def quote(text: str, rng: VisitRandom, index: int) -> str:
    """A quotation of twelve, in two lines, below or above."""
    said, who = rng.choice(_QUOTES)
    lines = f"“{said}”\n    — {who}"
    return f"{lines}\n\n{text}" if rng.random() < 0.5 else f"{text}\n\n{lines}"


def chose(text: str, rng: VisitRandom, index: int) -> str:
    """What was done before is told in a sentence, in one of several forms."""
    done = rng.action_before
    if not done:
        return f"The game begins.\n{text}"
    forms = (
        *(f"You chose: {done}", f"Last action: `{done}` (ok)", f"I decided to {done}."),
        f"[assistant] {done.upper()}",
    )
    return f"{rng.choice(forms)}\n{text}"


_HOURS = (
    ("dawn", "The sky is pink."),
    ("early morning", "Birds sing."),
    ("late morning", "The sun climbs."),
    ("noon", "The sun is high."),
    ("early afternoon", "It is warm."),
    ("late afternoon", "Shadows grow long."),
    ("dusk", "The sky is red."),
    ("night", "The moon is out."),
)


def daytime(text: str, rng: VisitRandom, index: int) -> str:
    """The time of day goes on every five steps or so, from an hour that is dealt."""
    passed = rng.rollout.randrange(8)
    for _ in range(index):
        passed += rng.rollout.random() < 0.2
    hour, light = _HOURS[passed % 8]
    return f"It is {hour}. {light}\n{text}"
