"""The picture of a decision: every rollout is a strip, and no log puts markup into it."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from graphcredit.credit.why.picture import why_picture
from graphcredit.store.errors import InputError
from tests.credit.why.test_decisions import store_of


def test_every_rollout_is_a_strip_and_the_losers_words_are_there(tmp_path: Path):
    walks = [("hall left room open", True)] * 5 + [("hall <b>&right cellar wait", False)] * 3
    picture = ElementTree.fromstring(why_picture(store_of(tmp_path / "store", walks)))
    strips = [each.get("stroke") for each in picture.iter() if each.tag.endswith("path")]
    assert (strips.count("#1f66b0"), strips.count("#c04f15")) == (5, 3)
    texts = [each.text for each in picture.iter() if each.tag.endswith("text")]
    assert {"5 of 5 won", "0 of 3 won", "<b>&right", "left", "open", "3 did"} <= set(texts)


def test_nothing_to_compare_is_said(tmp_path: Path):
    store = store_of(tmp_path / "store", [("hall left", True), ("hall left", True)])
    with pytest.raises(InputError, match="must have a decision to draw"):
        why_picture(store)
