"""Kinds of noise that somebody else wrote who had not read `--merge segments`, all at once.

Nothing in the merge may be changed with them in view. Each leaves the state as it is. The first
five have fresh values at each look. The next five also change the structure around the text. The
last six have values that last for some looks or for a whole rollout.
"""

from __future__ import annotations

import json
import random
import re
import textwrap
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from benchmarks.noise.disturb import Disturb, VisitRandom

T = TypeVar("T")

_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_START = datetime(2026, 3, 2, tzinfo=UTC)


def _hex(rng: random.Random, digits: int) -> str:
    """Return a random hexadecimal number."""
    return f"{rng.getrandbits(4 * digits):0{digits}x}"


def _token(rng: random.Random, length: int) -> str:
    """Return random letters and digits."""
    return "".join(rng.choices(_BASE62, k=length))


def _life(rng: VisitRandom) -> random.Random:
    """Return a generator that gives the same numbers at each visit of a rollout."""
    return random.Random(rng.rollout.getrandbits(64))


def _held(
    life: random.Random, index: int, looks: tuple[int, int], draw: Callable[[random.Random], T]
) -> T:
    """Return the present value of something that is drawn anew whenever it lasted some looks."""
    value, left = draw(life), life.randint(*looks)
    for _ in range(index):
        left -= 1
        if left == 0:
            value, left = draw(life), life.randint(*looks)
    return value


def _elapsed(life: random.Random, index: int, low: int, high: int) -> int:
    """Return the sum of what each look so far of a rollout took."""
    return sum(life.randint(low, high) for _ in range(index + 1))


def _among(lines: list[str], rng: random.Random, added: Sequence[str]) -> str:
    """Return the lines with others added between them at random places."""
    for line in added:
        lines.insert(rng.randint(0, len(lines)), line)
    return "\n".join(lines)


# Fresh values at each look.


def tool_result_json(text: str, rng: VisitRandom, index: int) -> str:
    """Wrap the text in the one-line JSON of a tool call's result."""
    return json.dumps(
        {
            "type": "tool_result",
            "tool_use_id": f"toolu_01{_token(rng, 22)}",
            "is_error": False,
            "content": [{"type": "text", "text": text}],
            "usage": {"input_tokens": rng.randint(900, 9000), "output_tokens": rng.randint(8, 90)},
            "latency_ms": round(rng.lognormvariate(5, 0.7), 1),
        },
        ensure_ascii=False,
    )


def captured_by_test(text: str, rng: VisitRandom, index: int) -> str:
    """Show the text as the captured output of a test run."""
    warnings = rng.choice(("", "", ", 1 warning", f", {rng.randint(2, 14)} warnings"))
    passed = f" 1 passed{warnings} in {rng.uniform(0.08, 4):.2f}s "
    return "\n".join(
        (
            " test session starts ".center(80, "="),
            "platform linux -- Python 3.11.7, pytest-8.1.1, pluggy-1.4.0",
            f"Using --randomly-seed={rng.getrandbits(32)}",
            f"rootdir: /tmp/pytest-of-ci/pytest-{rng.randint(0, 999)}/observe0",
            "collected 1 item",
            f"[gw{rng.randint(0, 7)}] PASSED tests/test_world.py::test_observe",
            " Captured stdout call ".center(80, "-"),
            text,
            passed.center(80, "="),
        )
    )


def signed_links(text: str, rng: VisitRandom, index: int) -> str:
    """Show the text as a scraped web page with signed links, a form token and a footer."""
    made = _START + timedelta(seconds=rng.randint(0, 30 * 86400))
    url = f"https://cdn.questhost.example/maps/{_hex(rng, 12)}.png"
    query = f"?Expires={made.timestamp() + 900:.0f}&Signature={_token(rng, 28)}~"
    hit = rng.choice(("HIT", "MISS", "STALE", "BYPASS"))
    return "\n".join(
        (
            f"![map of this place]({url}{query})",
            text,
            f'<input type="hidden" name="csrf_token" value="{_token(rng, 32)}">',
            f"Page generated {made:%Y-%m-%d %H:%M:%S} UTC in {rng.uniform(4, 310):.1f} ms · "
            f"cache {hit} · {rng.randint(180, 2400):,} players online",
        )
    )


def telemetry_yaml(text: str, rng: VisitRandom, index: int) -> str:
    """Put the text into a YAML document beside measurements, whose keys come in any order."""
    fields = [
        f"cpu_percent: {rng.uniform(2, 98):.1f}",
        f"rss_mb: {rng.randint(210, 1900)}",
        f"gpu_temp_c: {rng.randint(34, 83)}",
        f"env_step_ms: {rng.lognormvariate(2, 0.8):.2f}",
        f"trace_id: {_hex(rng, 32)}",
        f"queue_depth: {rng.choice((0, 0, 0, 1, 2, 5))}",
    ]
    fields = rng.sample(fields, rng.randint(4, len(fields)))
    fields.append("observation: |\n" + textwrap.indent(text, "  "))
    rng.shuffle(fields)
    return "\n".join(("---", *fields, "..."))


def rate_limit(text: str, rng: VisitRandom, index: int) -> str:
    """Put the messages of up to three failed requests before the text."""
    failed = []
    for attempt in range(1, 1 + rng.choice((0, 0, 1, 1, 2, 3))):
        wait = rng.uniform(0.4, 2) * 2**attempt
        failed.append(
            rng.choice(
                (
                    f"HTTP 429 Too Many Requests (request req_{_token(rng, 16)}), "
                    f"retrying in {wait:.2f} s, attempt {attempt}/5",
                    f"WARN  upstream 503 from pod env-{_hex(rng, 5)}, backoff {wait * 1000:.0f}ms",
                    f"Retry {attempt}: read timed out (read timeout={rng.choice((5, 10, 30))})",
                    f"x-ratelimit-remaining: 0; x-ratelimit-reset: {rng.randint(1, 59)}s",
                )
            )
        )
    return "\n".join((*failed, text))


# Structure around the text.


def accessibility_tree(text: str, rng: VisitRandom, index: int) -> str:
    """Show the text as the accessibility tree of a browser's page, with advertisements."""
    node = rng.randint(20, 4000)
    rows = [f"Tab {rng.randint(0, 3)} (current): Quest Online", ""]
    rows.append(f"[{node}] RootWebArea 'Quest Online' focused: True")
    parts = [f"StaticText {line!r}" for line in text.split("\n")]
    parts[0] = parts[0].replace("StaticText", "heading", 1)
    offers = [
        f"link 'Sponsored: {rng.randint(10, 70)} % off {what}' url: /ad?c={_hex(rng, 8)}"
        for what in rng.sample(("headphones", "hotel stays", "running shoes", "VPN plans"), 2)
    ]
    widgets = ["button 'Scroll to top'", "img 'avatar'", "textbox 'Search' required: False"]
    added = rng.sample(offers + widgets, rng.randint(1, 4))
    for part in _among(parts, rng, added).split("\n"):
        node += rng.randint(1, 9)
        rows.append(f"\t[{node}] {part}")
    return "\n".join(rows)


def notifications(text: str, rng: VisitRandom, index: int) -> str:
    """Let up to three notifications of a desktop come between the lines."""
    who = rng.choice(("Mira", "Tobias", "Chen", "Aisha", "Lukas", "Ops bot"))
    clock = f"{rng.randint(7, 19)}:{rng.randint(0, 59):02}"
    forms = (
        f"🔔 Slack · #general · {who}: anyone up for lunch at {clock}?",
        f"📧 New mail ({rng.randint(1, 40)} unread) from {who}: "
        f"Re: invoice {rng.randint(10_000, 99_999)}",
        f"📅 Reminder: stand-up in {rng.choice((5, 10, 15))} minutes ({clock})",
        f"🔋 Battery at {rng.randint(6, 99)} %, {rng.choice(('charging', 'not charging'))}",
        f"⬇️ Update {rng.randint(100, 140)}.0.{rng.randint(1000, 7000)} is ready to install",
        f"<system-reminder>The file notes-{_hex(rng, 4)}.md was changed by {who}."
        "</system-reminder>",
    )
    shown = rng.sample(forms, rng.choice((0, 1, 1, 2, 3)))
    return _among(text.split("\n"), rng, shown)


def out_of_order_log(text: str, rng: VisitRandom, index: int) -> str:
    """Deliver the lines as numbered log entries, some of them twice or after the next one."""
    number, second = rng.randint(1000, 99000), rng.uniform(0, 86000)
    entries = []
    for line in text.split("\n"):
        number += 1
        second += rng.uniform(0, 0.02)
        at = _START + timedelta(seconds=second)
        entries.append(f"{at:%H:%M:%S.%f} seq={number} stdout | {line}")
    for place in range(len(entries) - 1):
        if rng.random() < 0.3:
            entries[place], entries[place + 1] = entries[place + 1], entries[place]
    again = [entry for entry in entries if rng.random() < 0.2]
    for entry in again:
        entries.insert(rng.randint(entries.index(entry) + 1, len(entries)), entry)
    return "\n".join(entries)


_MISREAD = {"l": "1", "o": "0", "i": "l", "m": "rn", "e": "c", "a": "s", "n": "b", "t": "r"}


def typing_errors(text: str, rng: VisitRandom, index: int) -> str:
    """Misspell up to three long words in the middle, as fingers or a scanner do."""
    places = [found.span() for found in re.finditer(r"\b[a-z]{6,}\b", text)]
    for start, end in sorted(rng.sample(places, min(len(places), rng.randint(0, 3))), reverse=True):
        at = rng.randint(start + 1, end - 3)
        here, after = text[at], text[at + 1]
        wrong = rng.choice((after + here, here + here + after, _MISREAD.get(here, here) + after))
        text = text[:at] + wrong + text[at + 2 :]
    return text


def folded_lines(text: str, rng: VisitRandom, index: int) -> str:
    """Cut long lines as a tool's output is cut, and give the rest below under a reference."""
    limit = rng.choice((48, 60, 72, 80, 100))
    lines, rests = [], []
    for line in text.split("\n"):
        if len(line) <= limit + 24:
            lines.append(line)
            continue
        reference, cut = _hex(rng, 6), limit - rng.randint(0, 12)
        lines.append(f"{line[:cut]}… [+{len(line) - cut} chars, ref {reference}]")
        rests.append(f"[ref {reference}] …{line[cut:]}")
    return "\n".join((*lines, *rests))


# Values that last.

_FIRST = [
    "Priya",
    "Tom",
    "Ines",
    "Kofi",
    "Yuki",
    "Omar",
    "Lena",
    "Raj",
    "Sofia",
    "Ben",
    "Anouk",
    "Diego",
    "Mei",
    "Jonas",
    "Amara",
    "Pavel",
    "Ruth",
    "Elif",
    "Noor",
    "Sam",
    "Greta",
    "Hugo",
    "Zoe",
    "Ivan",
]
_LAST = [
    "Adams",
    "Baker",
    "Costa",
    "Diallo",
    "Evans",
    "Fischer",
    "Gupta",
    "Haddad",
    "Ito",
    "Jansen",
    "Kim",
    "Lopez",
    "Moreau",
    "Novak",
]
_STAFF = ("Dana", "Marcus", "Wei", "Olu", "Petra")


def support_chat(text: str, rng: VisitRandom, index: int) -> str:
    """Address the rollout's customer by name, in the words of staff who take turns."""
    life = _life(rng)
    name = life.choice(_FIRST)
    case = f"{name} {life.choice(_LAST)} · case #{life.randint(10000, 99999)}"
    agent = _held(life, index, (3, 6), lambda draw: draw.choice(_STAFF))
    lines = text.split("\n")
    if len(lines) > 1:
        lines[1] = f"{name}, here is what I see: {lines[1]}"
    told = "\n".join(lines).replace("You are carrying", f"By my records {name} is carrying")
    return f"{agent} is helping {case}\n{told}"


_ARMS = (
    ("-= {} =-", "You are carrying", None),
    ("## {}", "Your bag holds", "New: quests for two! Invite a friend and both get a month free."),
    ("{} | Quest Online", "In hand you have", "Members save 10 % this week. See plans."),
)


def experiment_arm(text: str, rng: VisitRandom, index: int) -> str:
    """Show the page as the rollout's arm of an experiment does, at first below a cookie banner."""
    life = _life(rng)
    title, carrying, banner = life.choice(_ARMS)
    until, partners = life.randint(0, 5), life.choice((112, 348, 791))
    text = re.sub(r"^-= (.*) =-$", lambda found: title.format(found[1]), text, flags=re.MULTILINE)
    lines = [text.replace("You are carrying", carrying)]
    if banner:
        lines.append(banner)
    if index < until:
        lines.insert(
            0, f"We and our {partners} partners use cookies. [Accept all] [Manage choices]"
        )
    return "\n".join(lines)


_LOCALES = (
    ("You are carrying", "on the floor", "%a %d %b %Y, %H:%M GMT", 0),
    ("Du trägst bei dir", "auf dem Boden", "%d.%m.%Y, %H:%M Uhr", 1),
    ("Vous portez", "par terre", "%d/%m/%Y à %Hh%M", 1),
    ("Llevas contigo", "en el suelo", "%d-%m-%Y %H:%M h", -3),
    ("持ち物", "床の上", "%Y年%m月%d日 %H:%M", 9),
)


def half_translated(text: str, rng: VisitRandom, index: int) -> str:
    """Translate only the fixed phrases to the rollout's language, and show its local time."""
    life = _life(rng)
    carrying, floor, form, hours = life.choice(_LOCALES)
    seconds = life.randint(0, 20 * 86400) + _elapsed(life, index, 5, 240)
    now = _START + timedelta(hours=hours, seconds=seconds)
    text = text.replace("You are carrying", carrying).replace("on the floor", floor)
    return f"{text}\n{now.strftime(form)}"


_WEATHER = (
    "Rain drums on the roof.",
    "Somewhere a clock ticks.",
    "The wind has dropped.",
    "You hear distant laughter.",
    "Sunlight falls through a crack.",
    "",
)


def ambience(text: str, rng: VisitRandom, index: int) -> str:
    """Add a sentence of weather to the room's description, which stays for some looks."""
    sentence = _held(_life(rng), index, (2, 5), lambda draw: draw.choice(_WEATHER))
    lines = text.split("\n")
    at = min(1, len(lines) - 1)
    lines[at] = f"{lines[at]} {sentence}".rstrip()
    return "\n".join(lines)


_PLANS = (
    "explore what I have not seen yet, then act",
    "follow the task word by word",
    "avoid repeating actions without effect",
    "try the cheapest action first",
)


def scratchpad(text: str, rng: VisitRandom, index: int) -> str:
    """Put the agent's memory before the text: the last action, a plan of some looks, a budget."""
    life, budget = _life(rng), random.Random(rng.rollout.getrandbits(64))
    total = life.choice((32_000, 128_000, 200_000))
    plan = _held(life, index, (2, 6), lambda draw: draw.choice(_PLANS))
    used = _elapsed(budget, index, 350, 1900)
    last = f"I just did `{rng.action_before}`." if rng.action_before else "Nothing done yet."
    memory = f"<memory>\nTurn {index + 1}. {last} Plan: {plan}.\n</memory>"
    return f"{memory}\n{text}\n[{used:,} of {total:,} tokens used, {used / total:.0%}]"


_THEMES = (("1;36", "33"), ("1;32", "35"), ("7", "4"), (None, None))


def resized_terminal(text: str, rng: VisitRandom, index: int) -> str:
    """Print to a terminal: the window is resized at times, colours and host are the rollout's."""
    life = _life(rng)
    title, value = life.choice(_THEMES)
    host = f"player@{life.choice(('atlas', 'borg', 'ws'))}-{life.randint(1, 40):02}"
    width = _held(life, index, (3, 6), lambda draw: draw.choice((40, 56, 72, 80, 120)))

    def coloured(line: str, code: str | None) -> str:
        return f"\x1b[{code}m{line}\x1b[0m" if code else line

    lines = text.split("\n")
    wrapped = [
        textwrap.fill(
            line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
        for line in lines
    ]
    wrapped[0], wrapped[-1] = coloured(wrapped[0], title), coloured(wrapped[-1], value)
    return "\n".join((f"{host}:~/quest$ {rng.action_before or './quest'}", *wrapped))


KINDS: dict[str, Disturb] = {
    "tool_result_json": tool_result_json,
    "captured_by_test": captured_by_test,
    "signed_links": signed_links,
    "telemetry_yaml": telemetry_yaml,
    "rate_limit": rate_limit,
    "accessibility_tree": accessibility_tree,
    "notifications": notifications,
    "out_of_order_log": out_of_order_log,
    "typing_errors": typing_errors,
    "folded_lines": folded_lines,
    "support_chat": support_chat,
    "experiment_arm": experiment_arm,
    "half_translated": half_translated,
    "ambience": ambience,
    "scratchpad": scratchpad,
    "resized_terminal": resized_terminal,
}
"""The kinds by name, from easy to hard."""
