"""Situations in words: what a template shows, and what is no template."""

from pathlib import Path

import pytest

from graphcredit.collector.environments.base import Observation
from graphcredit.collector.policies.base import PolicyView
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
