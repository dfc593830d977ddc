"""Lines of text that agents of OpenEnv print: `[START] …`, `[STEP] …` and `[END] …`."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.logs.csv_rows import cell_value
from graphcredit.collector.importers.logs.files import Record, parsed

_LINE = re.compile(r"^.*?\[(START|STEP|END)\][: ]*(.*)$", re.MULTILINE)
_STEP = re.compile(
    r"step=(?P<step>\d+)\s+action=(?P<action>.*?)\s+reward=(?P<reward>\S+)"
    r"(?:\s+done=(?P<done>\S+))?(?:\s+error=(?P<error>.*))?"
)
_FIELD = re.compile(r"(\w+)=(\S+)")
_NOTHING = {"null": None, "none": None}


def has_marks(text: str) -> bool:
    """Return whether a text has lines of steps."""
    return any(line[1] == "STEP" and _fields_of(line) for line in _LINE.finditer(text))


def marked_episodes(path: Path, text: str) -> Iterator[Record]:
    """Yield a record for each episode: what its first and last line say, and its `steps`."""
    episode: dict[str, Any] = {}
    first = 1
    for line in _LINE.finditer(text):
        if line[1] == "START" and episode:
            yield Record(path=path, place=f"line {first}", value=episode, share=1.0)
            episode = {}
        if not episode:
            first = text.count("\n", 0, line.start()) + 1
        if line[1] == "STEP":
            episode.setdefault("steps", []).append(_fields_of(line))
        else:
            episode |= {name: each for name, each in _fields_of(line).items() if name != "steps"}
    if episode:
        yield Record(path=path, place=f"line {first}", value=episode, share=1.0)


def _fields_of(line: re.Match[str]) -> dict[str, Any]:
    """Return the fields of a line, which may be JSON; an action has any characters."""
    whole = parsed(line[2].encode()) if line[2].startswith("{") else None
    if isinstance(whole, dict):
        return whole  # pyright: ignore[reportUnknownVariableType]
    step = _STEP.match(line[2]) if line[1] == "STEP" else None
    fields = dict(_FIELD.findall(line[2])) if step is None else step.groupdict(default="")
    if line[1] == "STEP" and step is None:
        return {}
    texts = {"action": fields.pop("action")} if step is not None else {}
    return texts | {k: _NOTHING.get(v.lower(), cell_value(v)) for k, v in fields.items()}
