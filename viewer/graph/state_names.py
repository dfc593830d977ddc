"""Names of states: what led there or the first line of the text, and what sets it apart."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, cast

from graphcredit.store.files.parse import parse_json
from graphcredit.store.log_text import one_line, visible
from graphcredit.viewer.graph.task_graph import Node, TaskGraph

TITLE, TOLD = 22, 26
"""Most characters of a title, and of what is told besides."""

_LOOKED_AT = 6000
"""Characters of a text that are looked at."""
_CALL = re.compile(r"\s*([\w./:-]+)\((\{.*\})\)|[^`]*```[\w-]*\n([^`]+)\n```[^`]*$", re.DOTALL)
"""A tool with its arguments, or prose around one block of code."""
_FOLDERS = re.compile(r"\bcd \S+ && |(?<![\w:/])(?:[\w.~@+-]*/)+(?=[\w@+-]+\.\w)")
"""Where a command runs, and the folders of a file."""
_CUT = re.compile(r"""[.!?;]\s+|\n|,\s*(?=["{\[])""")
"""What ends a piece of a text: a sentence, a line, a field of JSON."""
_FRAME = "-=*#~{}[]. \t"
"""Characters around a piece that tell nothing."""
_PLACE = re.compile(r"(?:page|location|room|place|url|file|path)\b\W|[-=*#~]{2,}", re.IGNORECASE)
"""How the first line of a place begins, whatever led there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StateName:
    """The name of a state."""

    title: str
    told: str = ""
    """What was returned, or what sets it apart; empty if there is nothing."""

    @property
    def line(self) -> str:
        """The name on one line."""
        return f"{self.title} · {self.told}" if self.told else self.title


def action_words(action: str, max_length: int = TITLE) -> str:
    """Return an action in short: of a call, the tool and the first values of its arguments."""
    call = _CALL.match(action)
    arguments = None if call is None else _parsed(call[2] or "")
    if call is None or not isinstance(arguments, dict):
        return _fit((call and call[3]) or action, max_length)
    tool, values = call[1], dict[str, str]()
    for name, value in cast("dict[str, Any]", arguments).items():
        match value:
            case [int(first), int(last)]:
                values[name] = f"{first}-{last}"
            case str() | int() | float() if value not in ("", True, False):
                values[name] = str(value)
            case _:
                pass
    words = [tool, *[*values.values()][:2]]
    if not {"command", "code"}.isdisjoint(values) and len(" ".join(words)) > max_length:
        # A shell or an editor: its command tells more than its name.
        words = [*values.values()][:3]
    return _fit(" ".join(words), max_length)


def _fit(text: str, max_length: int) -> str:
    """Return text on one line, without folders if there is no room for them."""
    line = " ".join(visible(text[:_LOOKED_AT]).split())
    return one_line(line if len(line) <= max_length else _FOLDERS.sub("", line), max_length)


@lru_cache(maxsize=4)
def state_names(graph: TaskGraph) -> Mapping[int, StateName]:
    """Return the name of each state of a whole graph, which tells what led to it."""
    came_by = _came_by(graph)
    alike: defaultdict[str, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        title = "GOAL" if node.is_goal else _title(node, came_by.get(node.state_id, ""))
        alike[title].append(node)
    return {
        node.state_id: StateName(title=title, told=told)
        for title, same in alike.items()
        for node, told in zip(same, _told(same, title, came_by), strict=True)
    }


def _came_by(graph: TaskGraph) -> dict[int, str]:
    """Return the action that led to each state most often; none led to the start."""
    start = graph.nodes[0].state_id
    visits: dict[int, int] = {}
    actions: dict[int, str] = {}
    for edge in graph.edges:
        is_other = edge.source != edge.target != start
        if is_other and edge.visits > visits.get(edge.target, 0):
            visits[edge.target], actions[edge.target] = edge.visits, edge.actions[0]
    return actions


def _title(node: Node, action: str) -> str:
    """Return the call that led to a state that is no place, else its first line."""
    first = visible(node.state[:_LOOKED_AT]).strip().partition("\n")[0]
    has_words = sum(map(str.isalpha, first)) >= max(1, len(first) // 4)
    if has_words and _PLACE.match(first):
        return _fit(first.strip(_FRAME), TITLE)
    if _CALL.match(action):
        return action_words(action)
    if has_words and first[0] not in "{[":
        return _fit(first.strip(_FRAME), TITLE)
    return f"after {one_line(action, TITLE - 6)}" if action else "start"


def _told(same: Sequence[Node], title: str, came_by: Mapping[int, str]) -> list[str]:
    """Return what is told of each state of one title: what the others do not have, rarest first."""
    if title == "GOAL":
        return ["" for _ in same]
    pieces = [_pieces(node.state) for node in same]
    count = Counter(chain.from_iterable(pieces))
    if len(same) == 1:
        is_result = _CALL.match(came_by.get(same[0].state_id, ""))
        return [_joined(pieces[0], title) if is_result else ""]
    return [
        _joined(sorted((p for p in mine if count[p] < len(same)), key=count.__getitem__), title)
        for mine in pieces
    ]


def _pieces(text: str) -> list[str]:
    """Return the pieces of a text, each once, as they will be shown."""
    pieces = (piece.strip(_FRAME) for piece in _CUT.split(visible(text[:_LOOKED_AT])))
    shown = (_fit(piece, TOLD) for piece in pieces if sum(map(str.isalnum, piece)) > 1)
    return list(dict.fromkeys(shown))


def _joined(pieces: Sequence[str], title: str) -> str:
    """Return as many pieces as there is room for, without those that the title says."""
    told = ""
    for piece in pieces:
        if told and len(told) + 3 + len(piece) > TOLD:
            break
        if not piece.startswith(title.rstrip("…")):
            told = f"{told} · {piece}" if told else piece
    return told


def _parsed(text: str) -> Any:
    """Return a JSON object or list; None for any other text."""
    if not text.lstrip().startswith(("{", "[")) or len(text) > 100_000:
        return None
    try:
        return parse_json(text)
    except (ValueError, RecursionError):
        return None
