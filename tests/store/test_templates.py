"""A stranger's chat template is rendered as transformers does, within limits, or refused."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from graphcredit.store.confined import templates
from graphcredit.store.confined.templates import TemplateRefusedError, render_chat
from graphcredit.store.errors import InputError
from tests.trainer.models import CHATML, MARKED, chat_tokenizer

DAY = date(2026, 1, 2)
CHAT = [{"role": "user", "content": "hall"}, {"role": "assistant", "content": "go east"}]
REFUSED = {
    "zero": ("{{ 1 // 0 }}", "division"),
    "overflow": ("{{ 10.0 ** 400 }}", "out of range"),
    "recursion": ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "recursion"),
    "deep": ("{% if 1 %}" * 500 + "{% endif %}" * 500, "recursion"),
    "surrogate": (r"{{ '\ud800' }}", "surrogates not allowed"),
    "digits": ("{{ (10 ** 5000)|string }}", "4300 digits"),
    "file": ("{% include '/etc/passwd' %}", "no loader"),
    "internals": ("{{ ''.__class__.__mro__ }}", "unsafe"),
    "program": ("{{ lipsum.__globals__['os'].popen('id') }}", "unsafe"),
}
STOPPED = {
    "time": ("{% for i in range(99999) %}" * 3 + "{% endfor %}" * 3, r"within 0\.5 s"),
    "memory": ("{{ 'x' * 6000000000 }}", "more than 1024 MiB of memory"),
    "number": ("{{ 9 ** (9 ** 9) }}", r"within 0\.5 s"),
}


@pytest.mark.parametrize(("template", "reason"), REFUSED.values(), ids=REFUSED)
def test_whatever_a_template_raises_is_its_refusal(template: str, reason: str):
    with pytest.raises(TemplateRefusedError, match=reason):
        render_chat(template, CHAT, day=DAY)


@pytest.mark.parametrize(("template", "reason"), STOPPED.values(), ids=STOPPED)
def test_a_template_that_breaks_a_limit_is_stopped_and_the_next_one_is_not(
    template: str, reason: str
):
    with pytest.raises(InputError, match=rf"the chat template .*{reason}, for one conversation"):
        render_chat(template, CHAT, day=DAY, seconds=0.5)
    assert render_chat("{{ messages|length }}", CHAT, day=DAY).text == "2"


@pytest.mark.parametrize("template", [CHATML, MARKED], ids=["chatml", "marked"])
@pytest.mark.parametrize("content", ["go east", 'é 日本 \n "{{ 1 }}" \u2028 \x00 <|im_end|>'])
def test_the_text_is_that_of_transformers(template: str, content: str):
    chat: list[Any] = [*CHAT, {"role": "user", "content": content}]
    options: dict[str, Any] = {"add_generation_prompt": True}
    expected = chat_tokenizer(template).apply_chat_template(chat, tokenize=False, **options)
    assert render_chat(template, chat, day=DAY, **options).text == expected


def test_a_template_writes_the_same_on_all_days_and_each_time():
    clock = "{% set f = '%Y-%m-%d %H:%M:%S' %}{{ strftime_now(f) }} {{ range(99999)|random }}"
    first, second = (render_chat(clock, CHAT, day=DAY).text for _ in range(2))
    assert first == second
    assert first.startswith("2026-01-02 00:00:00 ")


def test_a_renderer_that_is_interrupted_or_killed_is_replaced(monkeypatch: pytest.MonkeyPatch):
    (before,) = templates._running  # pyright: ignore[reportPrivateUsage]
    with monkeypatch.context() as patch:

        def interrupted(size: int = -1) -> bytes:
            raise KeyboardInterrupt

        patch.setattr(before, "stdout", type("Out", (), {"readline": interrupted}))
        with pytest.raises(KeyboardInterrupt):
            render_chat("late", CHAT, day=DAY)
    assert not before.lives
    assert render_chat("one", CHAT, day=DAY).text == "one"
    (after,) = templates._running  # pyright: ignore[reportPrivateUsage]
    after.kill()
    after.wait()
    assert render_chat("two", CHAT, day=DAY).text == "two"
    assert not Path(f"/proc/{after.pid}").exists()
