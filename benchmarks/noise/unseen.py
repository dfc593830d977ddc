"""Twelve kinds of noise as real systems put it on the observations of an agent.

Values of the first four are fresh at each look; the next four change the form of the text; values
of the last four last for a while, or follow the step or the action before. Somebody wrote them who
had not read `--merge segments`. They judged it once, and are design since.
"""

import json
import random
import re
import textwrap
import uuid
from datetime import datetime, timedelta
from xml.sax.saxutils import escape

from benchmarks.noise.disturb import Disturb, VisitRandom

BACKGROUND = (
    'DEBUG urllib3.connectionpool: http://env:8000 "POST /step HTTP/1.1" 200 {n}',
    "DEBUG asyncio: poll {n} ms took {m}.{n} ms: timeout",
    "INFO  env.heartbeat: alive, queue depth {m}, {n} requests served",
    "WARN  env.gc: generation 2 collected {n} objects in 0.0{m} s",
)
FAILURES = (
    "429 Too Many Requests", "502 Bad Gateway", "503 Service Unavailable", "504 Gateway Timeout",
    "connection reset by peer", "read timed out (30.0 s)",
)  # fmt: skip
BORDERS = ("╭─╮│╰╯", "┌─┐│└┘", "+-+|++")
PHRASES: tuple[str, ...] = (
    "You are carrying nothing.", "You are carrying:", "You are in", "You're now in",
    "You find yourself in", "You arrive in", "You can make out", "You make out", "You can see",
    "You see", "There is", "on the floor.", "You don't like doors?", "Don't worry,",
    "Why not try going", "You should try going",
)  # fmt: skip
LANGUAGES = {
    "%m/%d/%Y|Last updated: ": PHRASES,
    "%d.%m.%Y|Zuletzt aktualisiert: ": (
        "Du trägst nichts bei dir.", "Du trägst bei dir:", "Du bist in", "Du bist jetzt in",
        "Du findest dich wieder in", "Du betrittst", "Du kannst gerade noch erkennen",
        "Du erkennst", "Du kannst hier sehen", "Du siehst", "Es gibt", "auf dem Boden.",
        "Du magst keine Türen?", "Keine Sorge,", "Versuche doch die Richtung",
        "Du solltest diese Richtung nehmen:",
    ),
    "%d/%m/%Y|Dernière mise à jour : ": (
        "Vous ne portez rien.", "Vous portez :", "Vous êtes dans", "Vous êtes maintenant dans",
        "Vous vous retrouvez dans", "Vous arrivez dans", "Vous pouvez distinguer",
        "Vous distinguez", "Vous pouvez voir", "Vous voyez", "Il y a", "par terre.",
        "Vous n'aimez pas les portes ?", "Ne vous inquiétez pas,", "Pourquoi ne pas essayer",
        "Vous devriez essayer d'aller vers",
    ),
    "%d-%m-%Y|Última actualización: ": (
        "No llevas nada.", "Llevas:", "Estás en", "Ahora estás en", "Te encuentras en",
        "Llegas a", "Alcanzas a distinguir", "Distingues", "Puedes ver", "Ves", "Hay",
        "en el suelo.", "¿No te gustan las puertas?", "No te preocupes,", "¿Por qué no pruebas",
        "Deberías probar a ir hacia",
    ),
}  # fmt: skip
WEATHER = (
    "Rain drums softly overhead.", "A cold wind rattles the shutters.", "The sky is clear outside.",
    "Thick fog presses against the windows.", "Thunder rumbles in the distance.",
)  # fmt: skip


def service_log(text: str, rng: VisitRandom, index: int) -> str:
    """Each line is a log record with a time, and records of other parts come in between."""
    clock, request = _clock(rng, index), f"{rng.getrandbits(32):08x}"
    records: list[str] = []
    for line in text.split("\n"):
        if rng.random() < 0.2:
            other = rng.choice(BACKGROUND).format(n=rng.randint(100, 1900), m=rng.randint(1, 9))
            records.append(f"{_stamp(clock)} {other}")
        clock += timedelta(milliseconds=rng.randint(0, 40))
        records.append(f"{_stamp(clock)} INFO  env.render [req={request}]: {line}")
    return "\n".join(records)


def shell_session(text: str, rng: VisitRandom, index: int) -> str:
    """A terminal shows the text between a prompt with the time and what the command used."""
    host, session = rng.rollout.randint(2, 250), f"{rng.rollout.getrandbits(24):06x}"
    clock, real = _clock(rng, index), rng.uniform(0.2, 2.5)
    load = " ".join(f"{rng.uniform(0.05, 2.4):.2f}" for _ in range(3))
    return (
        f"[{clock:%H:%M:%S}] agent@ip-10-0-3-{host}:~/run$ ./client observe --session {session}\n"
        f"{text}\n\n"
        f"real\t0m{real:.3f}s\nuser\t0m{real * rng.uniform(0.2, 0.6):.3f}s\n"
        f"sys\t0m{real * rng.uniform(0.02, 0.2):.3f}s\n"
        f"mem {rng.uniform(1.1, 2.9):.2f}/3.84 GiB | load {load} | pid {rng.randint(900, 32000)}"
    )


def retrying_proxy(text: str, rng: VisitRandom, index: int) -> str:
    """A gateway reports failed attempts, if any, and the headers of the answer that came."""
    failed = rng.choices((0, 1, 2, 3), (6, 3, 2, 1))[0]
    head = [
        f"[gateway] attempt {n + 1}/4 failed: {rng.choice(FAILURES)}; "
        f"retrying in {2**n * rng.uniform(0.5, 1.5):.2f} s"
        for n in range(failed)
    ]
    head += [
        "HTTP/1.1 200 OK",
        f"date: {_clock(rng, index):%a, %d %b %Y %H:%M:%S} GMT",
        f"x-request-id: {uuid.UUID(int=rng.getrandbits(128), version=4)}",
        f"x-ratelimit-remaining: {rng.randint(0, 59)}",
        f"x-cache: {rng.choice(('HIT', 'MISS', 'MISS', 'EXPIRED'))}",
        f"server-timing: upstream;dur={rng.uniform(12, 900):.1f}",
    ]
    return "\n".join(head) + f"\n\n{text}"


def speech(text: str, rng: VisitRandom, index: int) -> str:
    """A speech recogniser writes each sentence with the times at which it was spoken."""
    at, rate, cues = rng.uniform(0, 1.5), rng.uniform(12, 18), list[str]()
    for sentence in re.split(r"(?<=[.!?]) +|\n", text):
        end = at + len(sentence) / rate + rng.uniform(0, 0.4)
        cues.append(f"[{_minutes(at)} --> {_minutes(end)}]  {sentence}")
        at = end + (rng.uniform(0.2, 1.2) if rng.random() < 0.4 else 0)
    return "\n".join(cues)


def screen_dump(text: str, rng: VisitRandom, index: int) -> str:
    """A phone's screen is dumped as a tree of nodes, wherever its view is scrolled to."""
    width, height = rng.rollout.choice(((1080, 2400), (720, 1600), (1440, 3120)))
    keyboard, top = rng.random() < 0.3, rng.randint(90, 260)
    nodes: list[str] = []
    for number, line in enumerate(text.split("\n")):
        bottom = top + 54 * (1 + len(line) // 48)
        shown = escape(line, {'"': "&quot;", "'": "&apos;"})
        nodes.append(
            f'    <node index="{number}" text="{shown}" class="android.widget.TextView" '
            f'clickable="false" bounds="[42,{top}][{width - 42},{bottom}]" />'
        )
        top = bottom + 18
    field = (
        f'    <node index="{len(nodes)}" text="" class="android.widget.EditText" '
        f'clickable="true" focused="{str(keyboard).lower()}" '
        f'bounds="[0,{height - (960 if keyboard else 210)}][{width},{height}]" />'
    )
    return "\n".join(('<hierarchy rotation="0">', *nodes, field, "</hierarchy>"))


def panel(text: str, rng: VisitRandom, index: int) -> str:
    """A terminal that is resized between looks wraps the text into a box with a border."""
    left, across, right, side, low, end = rng.choice(BORDERS)
    width = rng.choice((60, 72, 76, 80, 96, 100, 116, 120))
    rows: list[str] = []
    for line in text.split("\n"):
        rows += textwrap.wrap(line, width - 4, break_on_hyphens=False) or [""]
    body = [f"{side} {row.ljust(width - 4)} {side}" for row in rows]
    title = " Observation ".center(width - 2, across)
    return "\n".join((left + title + right, *body, low + across * (width - 2) + end))


def hash_map(text: str, rng: VisitRandom, index: int) -> str:
    """A tool returns JSON whose keys come in any order, sometimes with empty ones or indented."""
    first, *rest = text.split("\n")
    fields: list[tuple[str, object]] = [
        ("ok", True),
        ("title", first),
        ("view", rest[:-1]),
        ("inventory", "".join(rest[-1:])),
    ]
    empty: tuple[tuple[str, object], ...] = (("warnings", []), ("cursor", None), ("images", []))
    fields += [field for field in empty if rng.random() < 0.5]
    rng.shuffle(fields)
    return json.dumps(dict(fields), indent=rng.choice((None, None, 2, 4)))


def clipboard(text: str, rng: VisitRandom, index: int) -> str:
    """The text was pasted through a client with its own quotes, spaces, line ends and margin."""
    if rng.random() < 0.5:
        text = text.replace("'", "’").replace("...", "…")
        text = re.sub(r'"([^"\n]*)"', r"“\1”", text)
    if rng.random() < 0.4:
        text = re.sub(r"(?<=[.!?]) ", "  ", text)
    if rng.random() < 0.4:
        text = re.sub(" ", lambda _: "\u00a0" if rng.random() < 0.15 else " ", text)
    margin = rng.choice(("", "", "> ", "    ", "| "))
    end = rng.choice(("\n", "\r\n", "\n\n", "  \n"))
    return end.join(margin + line for line in text.split("\n")) + rng.choice(("", end))


def language(text: str, rng: VisitRandom, index: int) -> str:
    """The account's language, of the whole rollout, is that of fixed phrases and of the date."""
    locale = rng.rollout.choices(list(LANGUAGES), (3, 1, 1, 1))[0]
    words = dict(zip(PHRASES, LANGUAGES[locale], strict=True))
    pattern = rf"(?:{'|'.join(map(re.escape, PHRASES))})(?!\w)"
    shown, (date, label) = re.sub(pattern, lambda m: words[m[0]], text), locale.split("|")
    return f"{shown}\n{label}{_clock(rng, 0).strftime(date)}"


def web_page(text: str, rng: VisitRandom, index: int) -> str:
    """A page has its visitor's name, test group and build, and a banner until it is dismissed."""
    of, bucket = rng.rollout, rng.rollout.choice("AB")
    user = of.choice(("Priya N.", "Tom Okafor", "m.lindqvist", "Guest 4471", "Yuki S."))
    points, banner, build = of.randint(0, 9800), of.randint(0, 8), f"{of.getrandbits(28):07x}"
    online = random.Random(f"{build} {index // 6}").randint(40, 900)
    head = ["Skip to main content", "Home | Explore | Help | Sign out"]
    account = f"Signed in as {user} ({points:,} points)"
    foot = [f"{online} people online now", f"© 2025 Questhall · build {build} · layout={bucket}"]
    if bucket == "A":
        head.append(account)
    else:
        foot[:0] = [account, "You may also like: Top 10 puzzles this week"]
    if index < banner:
        head.append("We use cookies to improve your experience. [Accept all] [Manage]")
    return "\n".join((*head, text, *foot))


def mud_server(text: str, rng: VisitRandom, index: int) -> str:
    """A game server adds weather that lasts some steps, its slow clock and the player's vitals."""
    of = rng.rollout
    hour = (of.randrange(24) + index // 3) % 24
    spell, offset = of.randint(4, 9), of.randrange(9)
    health, mana = of.randint(60, 140), of.randint(40, 120)
    weather = random.Random(f"{health} {mana} {(index + offset) // spell}").choice(WEATHER)
    went = rng.action_before.startswith("go ")
    moves = 100 - min(60, 2 * index) - (3 if went else 0)
    tired = ["You pause to catch your breath."] if went and moves < 85 else []
    part = ("night", "morning", "afternoon", "evening")[hour // 6]
    status = f"[{hour:02}:00, {part}] <{health + min(index, 20)}hp {mana}mn {moves}mv>"
    return "\n".join((*tired, weather, text, status))


def turns(text: str, rng: VisitRandom, index: int) -> str:
    """A harness numbers the turns, repeats the last action, and says how much budget is left."""
    base, slope, limit = rng.rollout.uniform(4, 9), rng.rollout.uniform(0.9, 2), 50
    action = f"Action {index}: {rng.action_before}\n" if rng.action_before else "Task started.\n"
    remind = "\nReminder: reply with exactly one command." if index % 5 == 4 else ""
    left = f"({limit - index} turns left, {base + slope * index:.0f}% of the context used)"
    return f"{action}Observation {index}: {text}\n{left}{remind}"


def _clock(rng: VisitRandom, index: int) -> datetime:
    start = datetime(2025, 1, 6) + timedelta(seconds=rng.rollout.randrange(250 * 86400))
    return start + timedelta(seconds=9 * index + rng.uniform(0, 8))


def _stamp(clock: datetime) -> str:
    return f"{clock:%Y-%m-%d %H:%M:%S},{clock.microsecond // 1000:03}"


def _minutes(seconds: float) -> str:
    return f"{int(seconds // 60):02}:{seconds % 60:06.3f}"


FRESH = (service_log, shell_session, retrying_proxy, speech)
FORM = (screen_dump, panel, hash_map, clipboard)
LASTING = (language, web_page, mud_server, turns)

KINDS: dict[str, Disturb] = {noise.__name__: noise for noise in FRESH + FORM + LASTING}
