"""Rules that make texts equal before they are compared."""

import itertools

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.credit.merging.alfworld import with_inventory
from graphcredit.credit.merging.rules import Substitution, normalise, rules_of
from graphcredit.credit.steps.complete import complete_trajectories
from graphcredit.store.errors import OptionError
from tests.worlds import step_table, trajectory


def normal_forms(texts: list[str], *names: str, substitutions: tuple[str, ...] = ()) -> list[str]:
    """Return the normal form of each text."""
    code, forms = normalise(pa.array(texts, pa.string()), rules_of(names, substitutions))
    return [forms[number] for number in code.tolist()]


def test_the_named_rules_do_what_they_say():
    assert normal_forms(["A \n  b\t", "a b"], "whitespace") == ["A b", "a b"]
    assert normal_forms(["STRASSE", "Straße"], "casefold") == ["strasse", "strasse"]


def test_rules_are_applied_in_order_and_substitutions_after_them():
    texts = ["Step 12 of 50 |  Kitchen", "step 3 of 50 | kitchen"]
    both = normal_forms(
        texts, "whitespace", "casefold", substitutions=(r"step \d+ of \d+ \| =>", "kitchen=>K")
    )
    assert both == ["K", "K"]


def test_a_substitution_may_use_groups_and_hold_an_arrow_itself():
    assert Substitution.parse(r"(\w+)@(\w+)=>\2 at \1")("me@home") == "home at me"
    assert Substitution.parse("a=>b=>c")("a=>b") == "c"
    assert Substitution.parse(r"(?is)ad(.*)!=>\1")("x AD y!") == "x  y"


@pytest.mark.parametrize("argument", ["nothing", "=>x", "([=>x", r"a=>\1", r"a=>\g<name>"])
def test_a_substitution_that_is_none_is_refused(argument: str):
    with pytest.raises(OptionError, match="substitution"):
        Substitution.parse(argument)


def test_an_unknown_rule_is_refused_with_those_there_are():
    with pytest.raises(OptionError, match="'lowercase'; there are whitespace, casefold, alfworld"):
        rules_of(["lowercase"], [])


@given(st.lists(st.text(alphabet="aA \n"), unique=True))
def test_normalising_twice_is_normalising_once(texts: list[str]):
    once = normal_forms(texts, "whitespace", "casefold")
    assert normal_forms(once, "whitespace", "casefold") == once


def household(*rows: list[dict[str, object]]) -> list[list[str]]:
    """Return, for each trajectory, the texts of all its states after `alfworld`."""
    steps, _ = complete_trajectories(step_table([step for row in rows for step in row]))
    steps = with_inventory(steps)
    texts = steps.state_texts.to_pylist()
    starts = steps.trajectory_start.tolist()
    return [
        [*(texts[c] for c in steps.state[a:b].tolist()), texts[steps.next_state[b - 1]]]
        for a, b in itertools.pairwise(starts)
    ]


def test_alfworld_adds_what_is_carried_and_what_was_done_to_it():
    path = ["sink", "take apple 1 from sink 1", "sink", "clean apple 1 with sink 1", "sink"]
    path += ["go to fridge 1", "fridge", "move apple 1 to fridge 1", "fridge"]
    assert household(trajectory("x", path)) == [
        [
            "sink",
            "sink\nYou carry apple 1.",
            "sink\nYou carry apple 1 [cleaned].",
            "fridge\nYou carry apple 1 [cleaned].",
            "fridge\nElsewhere: apple 1 [cleaned].",
        ]
    ]


def test_alfworld_starts_every_trajectory_with_empty_hands():
    first = trajectory("x", ["room", "take cup 2 from desk 1", "room"])
    second = trajectory("y", ["room", "look", "room"])
    assert household(first, second) == [["room", "room\nYou carry cup 2."], ["room", "room"]]


def test_alfworld_ignores_actions_that_did_nothing():
    refused = ["room", "take cup 2 from desk 1", "Nothing happens.", "look", "room"]
    invalid = ["room", "take cup 2 from desk 1", "room"]
    assert household(trajectory("x", refused), trajectory("y", invalid, invalid=(0,))) == [
        ["room", "Nothing happens.", "room"],
        ["room", "room"],
    ]


def test_alfworld_lets_what_was_heated_be_cooled_and_not_both():
    path = ["k", "heat egg 1 with microwave 1", "k", "cool egg 1 with fridge 1", "k"]
    assert household(trajectory("x", path)) == [
        ["k", "k\nElsewhere: egg 1 [heated].", "k\nElsewhere: egg 1 [cooled]."]
    ]
