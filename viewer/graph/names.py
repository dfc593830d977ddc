"""Say what distinguishes states whose texts begin alike, such as four rooms of one name."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from graphcredit.viewer.graph.task_graph import Node
from graphcredit.viewer.widgets.text import one_line, visible

_WORDS = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_SHORTEST = 4
_MOST_WORDS = 400


def headline(node: Node) -> str:
    """Return the first line of a state's text, without decoration."""
    first = visible(node.state).strip().partition("\n")[0]
    return first.strip("-= \t")


def distinctions(nodes: Iterable[Node], max_length: int = 16) -> dict[int, str]:
    """Return, for states that share their first line, the words of each that fewest others have.

    A state that has no such word is told by a word that it lacks.
    """
    alike: defaultdict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        if not node.is_goal:
            alike[headline(node)].append(node)
    return {
        node.state_id: words
        for same in alike.values()
        if len(same) > 1
        for node, words in zip(same, _told_apart(same, max_length), strict=True)
        if words
    }


def _told_apart(same: list[Node], max_length: int) -> list[str]:
    texts = [_words(node.state) for node in same]
    count = Counter(word for words in texts for word in words)
    return [_rarest(words, count, len(same), max_length) for words in texts]


def _rarest(words: dict[str, None], count: Counter[str], size: int, max_length: int) -> str:
    """Return the rarest words of a text that not all have, as many as there is room for."""
    told = ""
    for word in sorted((word for word in words if count[word] < size), key=count.__getitem__):
        if told and len(told) + 1 + len(word) > max_length:
            break
        told = f"{told} {word}".lstrip()
    lacking = [word for word in count if word not in words]
    if not told and lacking:
        told = f"no {max(lacking, key=count.__getitem__)}"
    return one_line(told, max_length) if told else ""


def _words(text: str) -> dict[str, None]:
    """Return the different words of a text, in its order."""
    words = _WORDS.findall(visible(text))[:_MOST_WORDS]
    return dict.fromkeys(word.casefold() for word in words if len(word) >= _SHORTEST)
