"""Answers of language models: an action, or nothing that can be done."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.collector.policies.language.answers import Answer, parse_answer, spoken


@pytest.mark.parametrize(
    ("text", "thought", "action"),
    [
        ("<think>The key is east.</think><action>go east</action>", "The key is east.", "go east"),
        ("\n<think>\na\n</think>\n\n<action> go east </action>\n", "a", "go east"),
        ("The prompt began it.</think><action>go east</action>", "The prompt began it.", "go east"),
        ("<think></think><action>go east</action>", "", "go east"),
        ("<think>a < b > c</think><action>say <hi></action>", "a < b > c", "say <hi>"),
    ],
)
def test_a_thought_and_an_action_are_found(text: str, thought: str, action: str):
    assert parse_answer(text, "tags") == Answer(thought=thought, action=action, is_malformed=False)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "go east",
        "<action>go east</action>",
        "<think>a</think>go east",
        "<think>a</think><action></action>",
        "<think>a</think><action>go east",
        "<think>a</think><action>go east</action> and then west",
        "Well, <think>a</think><action>go east</action>",
        "<think>a</think><action>go east</action><action>go west</action>",
        "<think>a</think><think>b</think><action>go east</action>",
        "<action>go east</action><think>a</think><action>go west</action>",
    ],
)
def test_anything_else_is_malformed_and_kept_whole(text: str):
    assert parse_answer(f" {text}\n", "tags") == Answer(None, text, is_malformed=True)


def test_a_plain_answer_is_the_action():
    assert parse_answer(" go east\n", "plain") == Answer(None, "go east", is_malformed=False)
    assert parse_answer(" \n", "plain") == Answer(None, "", is_malformed=True)


@given(st.lists(st.sampled_from(["<think>", "</think>", "<action>", "</action>", "a", " ", "\n"])))
def test_what_is_found_is_what_the_whole_form_matches(pieces: list[str]):
    """The form as one expression, which takes the square of the time where there is much space."""
    text = "".join(pieces)
    form = r"\s*(<think>)?(?P<thought>[^<]*)</think>\s*<action>(?P<action>[^<]*)</action>\s*"
    found = re.fullmatch(form, text)
    answer = parse_answer(text, "tags")
    if found is None or not found["action"].strip():
        assert answer == Answer(None, text.strip(), is_malformed=True)
    else:
        assert answer == Answer(found["thought"].strip(), found["action"].strip(), False)


_words = st.text("ab <>[]/\n", min_size=1).map(str.strip).filter(bool)


@given(_words, _words)
def test_what_is_spoken_is_understood(thought: str, action: str):
    assert parse_answer(spoken(thought, action, "tags"), "tags") == Answer(thought, action, False)
    assert parse_answer(spoken(thought, action, "plain"), "plain") == Answer(None, action, False)
