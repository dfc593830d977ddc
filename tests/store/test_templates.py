"""A stranger's chat template is rendered as transformers does, or refused."""

from datetime import date
from typing import Any

import pytest

from graphcredit.store.chat_template import TemplateRefusedError, render_chat
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


@pytest.mark.parametrize(("template", "reason"), REFUSED.values(), ids=REFUSED)
def test_whatever_a_template_raises_is_its_refusal(template: str, reason: str):
    with pytest.raises(TemplateRefusedError, match=reason):
        render_chat(template, CHAT, day=DAY)


@pytest.mark.parametrize("template", [CHATML, MARKED], ids=["chatml", "marked"])
@pytest.mark.parametrize("content", ["go east", 'é 日本 \n "{{ 1 }}" \u2028 \x00 <|im_end|>'])
def test_the_text_is_that_of_transformers(template: str, content: str):
    chat: list[Any] = [*CHAT, {"role": "user", "content": content}]
    options: dict[str, Any] = {"add_generation_prompt": True}
    expected = chat_tokenizer(template).apply_chat_template(chat, tokenize=False, **options)
    assert render_chat(template, chat, day=DAY, **options).text == expected


def test_a_template_writes_the_same_on_all_days():
    clock = "{% set f = '%Y-%m-%d %H:%M:%S' %}{{ strftime_now(f) }}"
    first, second = (render_chat(clock, CHAT, day=DAY).text for _ in range(2))
    assert first == second
    assert first.startswith("2026-01-02 00:00:00")
