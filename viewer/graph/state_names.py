"""Names of states, as a person would give them: from the structure of texts and of what led there.

A name is a title (a place; or a tool with its argument, for a result) and what is told besides:
what is carried, what was returned, and what other states of the same title do not have.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
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
_TAGGED = re.compile(r"^<([\w-]+)>(?:([^<>\n]*)</\1>$)?|</[\w-]+>$", re.MULTILINE)
"""Tags that a harness puts around parts of a result."""
_CUT = re.compile(r"[.!?]+(?:\s+|$)|[;\n]+|,\s+")
"""What ends a piece of a text: a sentence, a line, an item of a list."""
_ADVERB = re.compile(r"(?:(?<=[.!?\n]\s)|(?<=\n)|^)[A-Z][a-z]+, ")
"""A word such as "However," at the start of a sentence."""
_DECORATED = re.compile(r"[-=*#~\s]{2,}\S.*\S[-=*#~\s]{2,}")
_PLACE = re.compile(r"(?:page|location|room|place|url|file|path)\b\W", re.IGNORECASE)
_FACT = re.compile(r"\s*[\w -]+:|\s*$")
_CARRIED = re.compile(
    r"\b(?:carrying|carry|holding|holds|inventory)\b:?\s+([^.\n;]+)", re.IGNORECASE
)
_KEY = re.compile(r"[\w ()]+: ")
_ASIDE = re.compile(r"(?<=\w) \(.*")
_WORD = re.compile(r"[^\W_]{2}")
"""What a row of a board, in single characters, does not have."""
_EMPTY = re.compile(r"(?:nothing|none|empty|no\b).*", re.IGNORECASE)
_FILLER = re.compile(
    r"(?:(?:you|there|here) (?:are|is|see|can see|have)|and|the|an?|agent\d* -)\s+", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True, slots=True)
class StateName:
    """The name of a state."""

    title: str
    told: str = ""
    """What is carried or was returned, and what sets it apart; empty if there is nothing."""

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
            case _ if _is_word(value):
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
    titles = {
        node.state_id: "GOAL" if node.is_goal else _title(node, came_by.get(node.state_id))
        for node in graph.nodes
    }
    alike: defaultdict[str, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        alike[titles[node.state_id]].append(node)
    carried = {node.state_id: _carried(node.state) for node in graph.nodes if not node.is_goal}
    if len({*carried.values()}) < 2:
        carried = dict.fromkeys(carried, "")
    told = {
        state: words
        for title, same in alike.items()
        if title != "GOAL"
        for state, words in _told(same, title, carried, came_by).items()
    }
    return {
        state: StateName(title=title, told=told.get(state, "")) for state, title in titles.items()
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


def _title(node: Node, action: str | None) -> str:
    first = visible(node.state[:_LOOKED_AT]).strip().partition("\n")[0]
    headline = first.strip("-=*#~ \t")
    is_place = _PLACE.match(first) or (_DECORATED.fullmatch(first) and _has_words(headline))
    if action is not None and not is_place and _CALL.match(action):
        return action_words(action)
    if not is_place and _is_data(node.state):
        return f"after {one_line(action, TITLE - 6)}" if action else "start"
    return _fit(_ASIDE.sub("", headline) or "start", TITLE)


def _is_data(text: str) -> bool:
    """Return whether a text is facts, JSON or a picture rather than prose with a first line."""
    lines = text[:_LOOKED_AT].strip().split("\n")
    return (
        _parsed(text) is not None
        or not _has_words(lines[0])
        or (len(lines) > 1 and all(map(_FACT.match, lines)))
    )


def _has_words(text: str) -> bool:
    return sum(map(str.isalpha, text)) >= max(1, len(text) // 4)


def _told(
    same: Sequence[Node], title: str, carried: Mapping[int, str], came_by: Mapping[int, str]
) -> dict[int, str]:
    """Return what is told of states of one title."""
    # As they will be shown: what differs in parts that are cut off tells nothing.
    pieces = [list(dict.fromkeys(map(_short, _pieces(node.state)))) for node in same]
    count = Counter(piece for each in pieces for piece in each)
    size, held = len(same), {carried[node.state_id] for node in same}
    told: dict[int, str] = {}
    for node, mine in zip(same, pieces, strict=True):
        apart = [piece for piece in mine if count[piece] < size]
        apart.sort(key=lambda piece: abs(2 * count[piece] - size))
        if size == 1 and _CALL.match(came_by.get(node.state_id, "")):
            apart = mine[:3]
        apart = [piece for piece in apart if not piece.startswith(title.rstrip("…"))]
        # What all of them carry must not take the room of what sets them apart.
        own = [carried[node.state_id]]
        words = [*filter(None, [*own, *apart] if len(held) > 1 else [*apart, *own])]
        lacking = [piece for piece in count if piece not in mine]
        if not words and lacking:
            words = [f"no {max(lacking, key=count.__getitem__)}"]
        told[node.state_id] = _joined(words)
    for words, number in Counter(told.values()).items():
        if 1 < number < size:
            group = [node for node in same if told[node.state_id] == words]
            told |= _told(group, title, carried, came_by)
    return told


def _joined(words: Sequence[str]) -> str:
    """Return as many pieces as there is room for, each once."""
    told = ""
    for piece in dict.fromkeys(words):
        if told and len(told) + 3 + len(piece) > TOLD:
            break
        if piece and piece not in told:
            told = f"{told} · {piece}" if told else piece
    return one_line(told, TOLD) if told else ""


def _carried(text: str) -> str:
    """Return what is carried in a state; empty if nothing is."""
    carried = _CARRIED.search(visible(text[:_LOOKED_AT]))
    return "" if carried is None or _EMPTY.match(carried[1]) else f"with {_short(carried[1])}"


def _short(piece: str) -> str:
    """Return a piece without the words that lead in to it."""
    line = " ".join(piece.split())
    key = _KEY.match(line)
    if len(line) > TOLD:
        line = _FOLDERS.sub("", line[key.end() if key else 0 :])
    while shorter := _FILLER.match(line):
        line = line[shorter.end() :]
    return one_line(line, TOLD) if line else ""


def _pieces(text: str) -> Iterator[str]:
    """Yield the pieces of a text: of JSON the values, else sentences, lines and items of lists."""
    value = _parsed(text)
    if isinstance(value, (dict, list)):
        yield from _values(value)
    else:
        seen = visible(text[:_LOOKED_AT])
        seen = _TAGGED.sub(lambda tag: f"{tag[1]} {tag[2]}\n" if tag[2] else "\n", seen)
        for piece in _CUT.split(_ADVERB.sub("", seen)):
            plain = piece.strip("-=*#~ \t") if piece else ""
            if _WORD.search(plain):
                yield plain


def _values(value: Any) -> Iterator[str]:
    """Yield the values of a JSON result: of an object each, of a list its length and the first."""
    if isinstance(value, list):
        items = cast("list[Any]", value)
        yield f"{len(items)} items"
        yield from _values(items[0]) if items and isinstance(items[0], dict) else map(str, items)
        return
    for name, inner in cast("dict[str, Any]", value).items():
        if _is_word(inner):
            yield str(inner) if isinstance(inner, str) else f"{name} {json.dumps(inner)}"
        elif isinstance(inner, dict):
            yield from _values(inner)


def _is_word(value: Any) -> bool:
    return isinstance(value, (str, int, float)) and value not in ("", True, False)


def _parsed(text: str) -> Any:
    """Return a JSON object or list; None for any other text."""
    if not text.lstrip().startswith(("{", "[")) or len(text) > 100_000:
        return None
    try:
        return parse_json(text)
    except (ValueError, RecursionError):
        return None
