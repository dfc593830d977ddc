"""Conversations as a tokenizer's own chat template writes them."""

from pathlib import Path

import pytest

from graphcredit.collector.policies.tokens import encode_prompt, load_tokenizer
from graphcredit.store.errors import InputError
from tests.collector.talkers import save_talker

_NO_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}{{ messages[0]['content'] }}"
)
_DATED = (
    "{% if not date_string is defined %}{% if strftime_now is defined %}"
    '{% set date_string = strftime_now("%d %b %Y") %}{% endif %}{% endif %}'
    "Today is {{ date_string }}, {{ strftime_now( '%Y-%m-%d' ) }}: {{ messages[0]['content'] }}"
)


def test_a_chat_template_that_refuses_a_system_message_is_named_with_its_words(tmp_path: Path):
    tokenizer = load_tokenizer(save_talker(tmp_path / "strict", chat_template=_NO_SYSTEM))
    user = {"role": "user", "content": "room 0"}
    assert tokenizer.decode(encode_prompt(tokenizer, [user])) == "room 0"
    message = (
        "must accept messages of system and user: that of .*strict says 'System role not "
        "supported'. .* leave `system` out of the prompt template"
    )
    with pytest.raises(InputError, match=message):
        encode_prompt(tokenizer, [{"role": "system", "content": "Play."}, user])


def test_a_chat_template_that_says_the_date_says_the_same_one_every_day(tmp_path: Path):
    tokenizer = load_tokenizer(save_talker(tmp_path / "dated", chat_template=_DATED))
    ids = encode_prompt(tokenizer, [{"role": "user", "content": "room 0"}])
    assert tokenizer.decode(ids) == "Today is 26 Jul 2024, 2024-07-26: room 0"
