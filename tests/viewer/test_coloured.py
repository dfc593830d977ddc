"""Text of a log in colours and as Markdown: all of it is there, and it is never more than text."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.store.log_text import visible
from graphcredit.viewer.chat.markdown import tree_of
from graphcredit.viewer.chat.runs import runs_of
from graphcredit.viewer.chat.texts import Code, parts_of
from graphcredit.viewer.chat.transcript import transcript
from graphcredit.viewer.steps.chat_data import drawn_messages
from tests.viewer.stores import HOSTILE
from tests.worlds import step_table, trajectory

_TAGS = {
    *[
        "p",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "em",
        "strong",
        "s",
        "ul",
        "ol",
        "li",
        "blockquote",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    ]
} | {*["pre", "code", "span", "hr"]}


def _coloured(text: str, language: str) -> list[tuple[str, str]]:
    return list(runs_of(text, (Code(start=0, end=len(text), language=language),)))


def test_code_diffs_and_terminals_have_colours():
    assert _coloured("x = 1  # no", "python") == [
        ("x = ", ""),
        ("1  ", "number"),
        ("# no", "comment"),
    ]
    assert _coloured("-a\n+b", "diff") == [("-a\n", "deleted"), ("+b", "inserted")]
    assert _coloured("x", "a.py") == _coloured("x", "no such language") == [("x", "")]
    terminal = "\x1b[1;31mred\x1b[0m \x1b[38;5;2mg\x1b[48;2;1;2;3mg\x1b[m.\x1b[2J\x1b]0;t\x07"
    assert runs_of(terminal, ()) == (("red ", "red"), ("gg", "green"), (".␛[2J␛]0;t␇", ""))


_MARKS = st.text(alphabet="ab1 \n\r\t#*_`~<>[]()!|-&;:/\\\"'{}=+@\x1b\u202e\u200b")


@given(_MARKS, st.sampled_from(["python", "json", "diff", "pytb", "bash", "html", "a.js"]))
def test_colours_lose_no_character_and_show_every_hidden_one(text: str, language: str):
    for part in (*parts_of(text), *parts_of(f"```{language}\n{text}")):
        runs = runs_of(part.text, part.code)
        if "\x1b[" not in text:
            assert "".join(shown for shown, _ in runs) == visible(part.text)
        assert not {"\x1b", "\u202e", "\u200b"} & {*"".join(shown for shown, _ in runs)}


def _nodes(tree: list[Any]) -> tuple[set[str], str]:
    """Return the tags of a tree, and all its text."""
    tags, text = set[str](), ""
    for node in tree:
        if isinstance(node, str):
            text += node
            continue
        tag, inside, more = node
        assert isinstance(more, int) or tag == "span"
        inner = _nodes(inside)
        tags |= {tag} | inner[0]
        text += inner[1]
    return tags, text


@given(_MARKS)
def test_markdown_has_harmless_elements_only_and_every_letter(text: str):
    tree = tree_of(text)
    if tree is not None:
        tags, shown = _nodes(tree)
        assert tags <= _TAGS
        assert sum(map(str.isalpha, shown)) == sum(map(str.isalpha, visible(text)))
        assert not {"\x1b", "\u202e", "\u200b"} & {*shown}


@pytest.mark.parametrize(
    "text",
    [
        HOSTILE,
        "<img src=x onerror=alert(1)>",
        "[l](javascript:alert(1)) ![i](https://example.org/i.png) <https://example.org>",
        "[a]: https://example.org\n\n[a]",
        "&lt;script&gt;",
    ],
)
def test_links_images_and_html_stay_text(text: str):
    tree = tree_of(text)
    assert tree is not None
    tags, shown = _nodes(tree)
    assert tags == {"p"}
    assert shown.replace("\n", "") == visible(text).replace("\n", "")


def test_markdown_is_rendered():
    tree = tree_of("# T\n\n3. *a*\n4. `b`\n\n```py\n1\n```")
    item_a = ["li", [["p", [["em", ["a"], 0]], 0]], 0]
    item_b = ["li", [["p", [["code", ["b"], 0]], 0]], 0]
    assert tree == [
        ["h1", ["T"], 0],
        ["ol", [item_a, item_b], 3],
        ["pre", ["py\n", ["span", ["1\n"], "number"]], 0],
    ]
    assert tree_of("> " * 100 + "deep") is None


def test_markdown_is_a_choice_and_code_goes_to_the_browser_once():
    rows = trajectory("x", ["A", "*do*", "B"], extra='{"policy": "p"}')
    rows[0]["thought"] = "*why*\n```python\npass\n```"
    table = step_table(rows)
    for chosen in (False, True):
        drawn = drawn_messages(
            transcript(table), table, step=0, estimator=None, as_markdown=chosen
        )["messages"][1]
        assert ("tree" in drawn["parts"][0]) is chosen
        assert drawn["about"] == "*do*"
        assert drawn["parts"][1]["runs"] == [[10, ""], [4, "keyword"], [4, ""]]
