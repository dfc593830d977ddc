"""Kinds of noise that the logs of real agents put on observations, to judge a merge with.

Four write values that are fresh at each look, four change how the text is set out, and four last
for a while, or for a rollout, or follow the agent's steps.

Somebody wrote them who had not read `--merge segments`. Nothing in it may be changed with them in
view.
"""

import json
import random
import re
import textwrap
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.noise.disturb import Disturb, VisitRandom

_PLAYERS = ("mika_88", "Torvald", "nightowl", "j0sie", "Brandt", "petal", "xX_Rook_Xx", "ana.m")
_CHATTER = (
    "anyone up for trivia later?",
    "brb, phone",
    "lol",
    "gg everyone",
    "how do I change my password?",
    "is it lagging for you too?",
    "happy friday!",
    "back",
    "ty!!",
    "first time on this server, hi",
)
_POD = "bcdfghjklmnpqrstvwxz2456789"
_PHRASES = {
    "en": (),
    "de": (
        (r"You are carrying nothing\.", r"Du trägst nichts bei dir."),
        (r"You are carrying:", r"Du trägst:"),
        (r"There is ([^.?!\n]+) on the floor\.", r"Auf dem Boden liegt: \1."),
        (r"There is an exit to the ", r"Es gibt einen Ausgang nach "),
        (r"Don't worry, ", r"Keine Sorge, "),
    ),
    "fr": (
        (r"You are carrying nothing\.", r"Vous ne portez rien."),
        (r"You are carrying:", r"Vous portez :"),
        (r"There is ([^.?!\n]+) on the floor\.", r"Par terre, il y a \1."),
        (r"There is an exit to the ", r"Il y a une sortie : "),
        (r"Don't worry, ", r"Pas d'inquiétude, "),
    ),
    "es": (
        (r"You are carrying nothing\.", r"No llevas nada."),
        (r"You are carrying:", r"Llevas:"),
        (r"There is ([^.?!\n]+) on the floor\.", r"En el suelo hay \1."),
        (r"There is an exit to the ", r"Hay una salida hacia "),
        (r"Don't worry, ", r"No te preocupes, "),
    ),
}
_INCIDENTS = (
    "We are investigating increased latency in some regions.",
    "A fix has been implemented and we are monitoring the results.",
    "Some users may see delayed notifications. No data is affected.",
)


# Fresh at each look


def response_headers(text: str, rng: VisitRandom, index: int) -> str:
    """Puts the head of an HTTP response first, with its request id and what the limit leaves."""
    request = uuid.UUID(int=rng.getrandbits(128), version=4)
    return (
        "HTTP/1.1 200 OK\n"
        "content-type: text/plain; charset=utf-8\n"
        f"x-request-id: {request}\n"
        f"x-ratelimit-remaining: {rng.randint(0, 4999)}\n"
        f"\n{text}"
    )


def timed_command(text: str, rng: VisitRandom, index: int) -> str:
    """Ends with what the shell's `time` measured for the command that printed the text."""
    real = rng.lognormvariate(-0.5, 0.8)
    user = real * rng.uniform(0.2, 0.7)
    system = real * rng.uniform(0.02, 0.2)
    return f"{text}\n\nreal\t0m{real:.3f}s\nuser\t0m{user:.3f}s\nsys\t0m{system:.3f}s"


def element_references(text: str, rng: VisitRandom, index: int) -> str:
    """Lists the lines as a browser tool's page snapshot does, with new element references."""
    reference = rng.randint(2, 900)
    lines: list[str] = []
    for line in text.split("\n"):
        lines.append(f"- generic [ref=e{reference}]: {line}")
        reference += rng.choice((1, 1, 1, 2, 3))
    return "\n".join(lines)


def server_chat(text: str, rng: VisitRandom, index: int) -> str:
    """Lets up to two chat messages of other players fall between the lines."""
    lines = text.split("\n")
    for _ in range(rng.choice((0, 1, 1, 2))):
        message = f"[chat] {rng.choice(_PLAYERS)}: {rng.choice(_CHATTER)}"
        lines.insert(rng.randint(1, len(lines)), message)
    return "\n".join(lines)


# Set out in another way


def _shuffled(pairs: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    keys = list(pairs)
    rng.shuffle(keys)
    return {key: pairs[key] for key in keys}


def tool_result(text: str, rng: VisitRandom, index: int) -> str:
    """Gives the text as a tool server's JSON result, with keys in any order, indented or not."""
    content = _shuffled({"type": "text", "text": text}, rng)
    result = _shuffled({"content": [content], "isError": False}, rng)
    return json.dumps(result, indent=rng.choice((None, 2)))


def terminal_wrap(text: str, rng: VisitRandom, index: int) -> str:
    """Wraps the lines between words at the width that the terminal window has at this look."""
    width = rng.choice((72, 80, 80, 96, 100, 120, 132))
    return "\n".join(
        textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
        for line in text.split("\n")
    )


def section_order(text: str, rng: VisitRandom, index: int) -> str:
    """Gives the lines below the title in any order, as a server does that keeps them in a set."""
    title, *sections = text.split("\n")
    rng.shuffle(sections)
    return "\n".join([title, *sections])


def typography(text: str, rng: VisitRandom, index: int) -> str:
    """Sets quotation marks straight or curly, and gaps between sentences in one of three ways."""
    if rng.random() < 0.5:
        text = re.sub(r'(^|\s)"', "\\1\u201c", text).replace('"', "\u201d").replace("'", "\u2019")
    gap = rng.choice((" ", "  ", "\u00a0"))
    return re.sub(r"(?<=[.?!]) ", gap, text)


# For a while, for a rollout, or with the agent's steps


def locale_phrases(text: str, rng: VisitRandom, index: int) -> str:
    """Writes the fixed phrases in the language of the rollout's user, and the rest in English."""
    for phrase, translation in _PHRASES[rng.rollout.choice(tuple(_PHRASES))]:
        text = re.sub(phrase, translation, text)
    return text


def pod_log(text: str, rng: VisitRandom, index: int) -> str:
    """Starts each line with the rollout's pod and the time of day, as a cluster's log viewer."""
    pod = "".join(rng.rollout.choices(_POD, k=5))
    second = rng.rollout.randrange(120 * 86400)
    now = datetime(2025, 2, 1, tzinfo=UTC) + timedelta(seconds=second + 8 * index)
    now += timedelta(microseconds=rng.randrange(6_000_000))
    lines: list[str] = []
    for line in text.split("\n"):
        stamp = f"{now:%Y-%m-%dT%H:%M:%S.%f}{rng.randrange(1000):03}Z"
        lines.append(f"[pod/env-6d8f7c9b54-{pod}/game] {stamp} {line}")
        now += timedelta(microseconds=rng.randint(15, 400))
    return "\n".join(lines)


def notebook_cell(text: str, rng: VisitRandom, index: int) -> str:
    """Shows the notebook's cell that took the last action, with the count of cells run so far."""
    count = rng.rollout.randint(2, 40) + index
    call = f"env.step({rng.action_before!r})" if rng.action_before else "env.reset()"
    return f"In [{count}]: print({call})\n{text}"


def incident_banner(text: str, rng: VisitRandom, index: int) -> str:
    """Shows a status banner on top for some steps of the rollout, while an incident is open."""
    start, length = rng.rollout.randint(0, 8), rng.rollout.randint(3, 9)
    number, notice = rng.rollout.randint(1200, 9800), rng.rollout.choice(_INCIDENTS)
    if not start <= index < start + length:
        return text
    return f"⚠ Degraded performance (INC-{number}): {notice}\n\n{text}"


KINDS: dict[str, Disturb] = {
    "response_headers": response_headers,
    "timed_command": timed_command,
    "element_references": element_references,
    "server_chat": server_chat,
    "tool_result": tool_result,
    "terminal_wrap": terminal_wrap,
    "section_order": section_order,
    "typography": typography,
    "locale_phrases": locale_phrases,
    "pod_log": pod_log,
    "notebook_cell": notebook_cell,
    "incident_banner": incident_banner,
}
"""The kinds, by name."""
