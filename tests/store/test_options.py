"""Options: checked strictly, and refused by the first one that is wrong."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

from graphcredit.store.errors import OptionError
from graphcredit.store.options import (
    AtLeastOne,
    Options,
    PathOption,
    PositiveDiscount,
    Texts,
    check_options,
    help_texts,
    options_from_text,
)


class _Inner(Options):
    owner: ClassVar[str] = "inner"

    size: AtLeastOne = 3
    """How many."""


class _Outer(Options):
    owner: ClassVar[str] = "outer"

    path: PathOption
    """Where."""
    often: Literal["once", "always"] | AtLeastOne = "once"
    """How often."""
    share: float = 0.5
    """How much."""
    texts: Texts = ()
    """Which."""
    inner: _Inner | None = None
    """A table."""


def test_text_stands_for_a_path_a_list_for_a_tuple_and_a_whole_number_for_a_float():
    values: dict[str, Any] = {"path": "a", "texts": ["b"], "share": 1, "inner": {"size": 2}}
    made = _Outer(**values)
    assert (made.path, made.texts, made.share, made.inner) == (
        Path("a"),
        ("b",),
        1.0,
        _Inner(size=2),
    )
    assert isinstance(made.share, float)


def test_a_docstring_is_the_help_of_its_field():
    assert help_texts(_Outer)["often"] == "How often."


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "outer must be told 'path'"),
        (
            {"pat": "a"},
            "outer has no option 'pat'; its options: path, often, share, texts, inner. "
            "Did you mean 'path'?",
        ),
        ({"path": 1}, "outer.path must be a path: got 1"),
        ({"path": "a", "share": "1"}, "outer.share must be a number: got '1'"),
        ({"path": "a", "share": True}, "outer.share must be a number: got True"),
        ({"path": "a", "share": float("nan")}, "outer.share must be a finite number: got nan"),
        ({"path": "a", "share": None}, "outer.share must be a number: got None"),
        ({"path": "a", "often": 0}, "outer.often must be 'once' or 'always' or at least 1: got 0"),
        ({"path": "a", "texts": "b"}, "outer.texts must be a list of texts: got 'b'"),
        ({"path": "a", "texts": [1]}, "outer.texts must be text: got 1"),
        ({"path": "a", "inner": 3}, "outer.inner must be a table: got 3"),
        ({"path": "a", "inner": {"size": 0}}, "inner.size must be at least 1: got 0"),
    ],
)
def test_the_first_option_that_is_wrong_is_named(values: dict[str, Any], message: str):
    with pytest.raises(OptionError) as refused:
        _Outer(**values)
    assert str(refused.value) == message


def test_what_is_changed_is_checked_again():
    made = _Outer(path=Path("a"))
    assert made.changed(share=0.25) == _Outer(path=Path("a"), share=0.25)
    with pytest.raises(OptionError, match=r"outer\.often must be"):
        made.changed(often="never")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Estimator:
    discount: PositiveDiscount = 0.9
    over: Literal["group", "batch"] = "group"


def test_options_of_an_estimator_are_read_from_text():
    found = options_from_text(_Estimator, {"discount": "0.5", "over": "batch"}, owner="ours")
    assert found == _Estimator(discount=0.5, over="batch")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"discount": "much"}, "ours.discount must be a number: got 'much'"),
        ({"discount": "0"}, "ours.discount must be above 0: got '0'"),
        ({"discount": "inf"}, "ours.discount must be a finite number: got 'inf'"),
        ({"over": "all"}, "ours.over must be 'group' or 'batch': got 'all'"),
        ({"gamma": "1"}, "ours has no option 'gamma'; its options: ours.discount, ours.over"),
    ],
)
def test_wrong_text_is_refused(settings: dict[str, str], message: str):
    with pytest.raises(OptionError) as refused:
        options_from_text(_Estimator, settings, owner="ours")
    assert str(refused.value) == message


def test_an_estimator_made_by_hand_is_checked():
    check_options(_Estimator(), owner="ours")
    with pytest.raises(OptionError, match=r"ours\.discount must be at most 1: got 2"):
        check_options(_Estimator(discount=2.0), owner="ours")
