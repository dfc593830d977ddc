"""Nothing of a log is live in the Markdown of `why`."""

import re

import pytest

from graphcredit.store.log_text import as_code, as_prose

LIVE = "<img src=x onerror=alert(1)> [a](http://evil) @everyone www.evil.com ![b](//evil) `c` **d**"


@pytest.mark.parametrize("text", [LIVE, "``` a", "# a", "- a", "a_b_", "a|b", "a\n\n# b", "&lt;"])
def test_what_is_no_plain_sentence_is_one_span_of_code(text: str):
    for code in (as_code(text), as_prose(text)):
        ticks = re.match("`+", code)
        assert ticks is not None
        inner = code.removeprefix(ticks[0]).removesuffix(ticks[0])
        assert ticks[0] not in re.findall("`+", inner)
        assert inner.strip() == " ".join(text.split())


def test_no_text_at_all_ends_no_code_of_another():
    assert as_code("") == as_code("\n") == "` `"


def test_a_plain_sentence_stays_as_it_is():
    said = "31 of 45 rollouts (69%) have no verdict: 0.5 is less than 1."
    assert as_prose(said) == said
