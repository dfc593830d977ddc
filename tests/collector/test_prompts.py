"""What language models are asked, and what is made of their answers: an action, or nothing."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.collector.environments.base import Observation
from graphcredit.collector.policies.base import PolicyView
from graphcredit.collector.policies.language.answers import Answer, parse_answer, spoken
from graphcredit.collector.policies.language.prompts import load_template, render, template_names
from graphcredit.store.errors import OptionError


def _observation(state: str, *actions: str, task: str | None = "Find it.") -> Observation:
    return Observation(
        state=state,
        text=f"You see: {state}.",
        admissible_actions=actions or None,
        oracle_actions=None,
        task=task,
    )


def _view(*states: str) -> PolicyView:
    *earlier, now = states
    return PolicyView(
        observation=_observation(now, "north", "take {key}"),
        history=tuple((_observation(state), f"leave {state}") for state in earlier),
    )


def _template(root: Path, text: str) -> Path:
    path = root / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_users_template_is_filled_as_it_says(tmp_path: Path):
    path = _template(
        tmp_path,
        'answer = "plain"\n'
        "history_length = 2\n"
        'history = "{state}/{observation} -> {action}"\n'
        'action = "* {action}"\n'
        'system = "Play."\n'
        'user = "{task}|{history}|{state}|{observation}|{actions}|{{}}"',
    )
    assert render(load_template(path), _view("den", "hall", "attic", "cellar")) == [
        {"role": "system", "content": "Play."},
        {
            "role": "user",
            "content": "Find it.|hall/You see: hall. -> leave hall\n"
            "attic/You see: attic. -> leave attic|cellar|You see: cellar.|"
            "* north\n* take {key}|{}",
        },
    ]


def test_before_the_first_step_the_history_says_so(tmp_path: Path):
    text = 'answer = "plain"\nhistory_length = 1\nno_history = "none"\nuser = "{history}"'
    template = load_template(_template(tmp_path, text))
    assert render(template, _view("den")) == [{"role": "user", "content": "none"}]


def test_system_and_no_history_are_shown_as_they_are(tmp_path: Path):
    text = 'answer = "plain"\nsystem = "{{task}} {}"\nno_history = "{state}"\nuser = "{history}"'
    template = load_template(_template(tmp_path, text))
    assert render(template, _view("den")) == [
        {"role": "system", "content": "{{task}} {}"},
        {"role": "user", "content": "{state}"},
    ]


def test_what_is_unknown_is_empty(tmp_path: Path):
    template = load_template(_template(tmp_path, 'answer = "plain"\nuser = "{task}[{actions}]"'))
    view = PolicyView(observation=_observation("den", task=None))
    assert render(template, view) == [{"role": "user", "content": "[]"}]


def test_the_packages_templates_show_the_situation():
    assert template_names() == ["alfworld", "plain", "search", "sokoban", "textworld", "tiny"]
    for name in template_names():
        content = render(load_template(name), _view("den", "hall"))[-1]["content"]
        assert all(part in content for part in ("Find it.", "hall", "north", "take {key}"))
        assert ("leave den" in content) == (name not in ("tiny", "plain"))


def test_the_fingerprint_changes_with_what_the_template_says(tmp_path: Path):
    text = 'answer = "plain"\nuser = "{state}"'
    before = load_template(_template(tmp_path, text)).fingerprint
    assert load_template(_template(tmp_path, f"# a comment\n{text}")).fingerprint == before
    assert load_template(_template(tmp_path, text.replace("plain", "tags"))).fingerprint != before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('answer = "plain"', "must be told 'user'"),
        ('user = "{state}"', "must be told 'answer'"),
        ('answer = "xml"\nuser = ""', "answer must be 'tags' or 'plain': got 'xml'"),
        ('answer = "plain"\nuser = 3', "template.user must be text: got 3"),
        ('answer = "plain"\nuser = ""\nhistory_length = true', "must be a whole number: got True"),
        ('answer = "plain"\nuser = ""\nhistory_length = -1', "must be at least 0: got -1"),
        ('answer = "plain"\nuser = ""\ncolour = "red"', "no option 'colour'"),
        ('answer = "plain"\nuser = "{state.__class__}"', r"has \{state\.__class__\}"),
        ('answer = "plain"\nuser = "{score}"', r"may have \{actions\}, .* has \{score\}"),
        ('answer = "plain"\nuser = "{state:{task}}"', r"has \{state:\{task\}\};"),
        ('answer = "plain"\nuser = "{state:.9}"', r"has \{state:\.9\};"),
        ('answer = "plain"\nuser = "{task!q}"', r"has \{task!q\};"),
        ('answer = "plain"\nuser = ""\naction = "{action!r:>9}"', r"has \{action!r:>9\};"),
        ('answer = "plain"\nuser = "{"', "write a literal brace twice"),
        ("answer =", "a template must be TOML"),
    ],
)
def test_what_is_no_template_is_refused_with_the_reason(tmp_path: Path, text: str, message: str):
    with pytest.raises(OptionError, match=message):
        load_template(_template(tmp_path, text))


def test_a_missing_template_is_refused_with_those_there_are():
    with pytest.raises(
        OptionError, match="one of alfworld, plain, search, sokoban, textworld, tiny or the path"
    ):
        load_template("chess")


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
