"""Markdown as a tree of a few harmless elements; links, images and HTML stay text.

The tree has no attribute but the number of a list's first item. The browser makes elements from a
list of its own, and sets all text as text.
"""

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from graphcredit.store.log_text import visible
from graphcredit.viewer.chat.runs import runs_of
from graphcredit.viewer.chat.texts import Code

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_REFUSED = ("link", "image", "autolink", "html_inline", "html_block", "entity", "reference")


@lru_cache(maxsize=4096)
def tree_of(text: str) -> list[Any] | None:
    """Return the nodes of a text: texts, and `[tag, nodes, number or colour]`.

    None for a text of which a letter would be lost, such as one that is nested too deeply: it is
    shown as it is.
    """
    root: list[Any] = []
    _add(_reader().parse(text), root)
    return root if _letters(_text_of(root)) == _letters(visible(text)) else None


@cache
def _reader() -> "MarkdownIt":
    # The library is imported at the first use: most people read the text as it is.
    from markdown_it import MarkdownIt

    options = {"html": False, "linkify": False, "typographer": False, "maxNesting": 40}
    return MarkdownIt("commonmark", options).enable(["table", "strikethrough"]).disable(_REFUSED)


def _add(tokens: "list[Token]", root: list[Any]) -> None:
    """Add the nodes of tokens."""
    inside = [root]
    for token in tokens:
        if token.children is not None:
            _add(token.children, inside[-1])
        elif token.nesting == 1:
            within: list[Any] = []
            inside[-1].append([token.tag, within, token.attrGet("start") or 0])
            inside.append(within)
        elif token.nesting == -1:
            inside.pop()
        elif token.type in ("fence", "code_block"):
            inside[-1].append(["pre", _code(token.content, token.info.strip()), 0])
        elif token.type == "code_inline":
            inside[-1].append(["code", [visible(token.content)], 0])
        elif token.type in ("softbreak", "hardbreak"):
            inside[-1].append("\n")
        elif token.type == "hr":
            inside[-1].append(["hr", [], 0])
        else:
            inside[-1].append(visible(token.content))


def _code(text: str, info: str) -> list[Any]:
    """Return the runs of code; the words beside its fence stand above it."""
    language = info.split(" ")[0]
    code = (Code(start=0, end=len(text), language=language),) if language else ()
    runs = [["span", [shown], colour] for shown, colour in runs_of(text, code)]
    return [f"{visible(info)}\n", *runs] if info else runs


def _text_of(nodes: list[Any]) -> str:
    return "".join(node if isinstance(node, str) else _text_of(node[1]) for node in nodes)


def _letters(text: str) -> int:
    return sum(map(str.isalpha, text))
