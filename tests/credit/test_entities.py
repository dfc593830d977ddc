"""Recognition of entities, and their distances, on texts and graphs written by hand."""

import re
import sys
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphcredit.credit.inputs.entities.find_names import NameFinder, fold
from graphcredit.credit.inputs.entities.mentions import Mentions, find_mentions
from graphcredit.credit.iteration.assemble import assemble
from graphcredit.store.errors import MissingDependencyError
from graphcredit.store.extras import how_to_install
from graphcredit.store.parquet.er_graph import ErGraph
from tests.credit.entity_world import entity, er_graph, relations
from tests.credit.reference_sapo import named
from tests.worlds import step_table, trajectory


def finder_of(names: Sequence[str]) -> NameFinder:
    """Return what finds names of owner 0; each stands for its position."""
    return NameFinder((0, name, position) for position, name in enumerate(names))


def find(finder: NameFinder, *texts: str, owner: int = 0) -> list[tuple[int, int]]:
    """Return (text, meaning) of what is named in texts of one owner."""
    found = finder.find(np.full(len(texts), owner), pa.array(texts, pa.string()))
    return list(zip(*(part.tolist() for part in found), strict=True))


def has(text: str, *names: str) -> list[str]:
    """Return those of some names that a text has."""
    return [names[position] for _, position in find(finder_of(names), text)]


@pytest.mark.parametrize("text", ["Romeo", "a chrome", "Rome2", "Rome_b", "Romé", "Rome\u0301"])
def test_a_part_of_a_word_is_no_name(text: str):
    assert has(text, "Rome") == []


@pytest.mark.parametrize("text", ["Rome", "Rome's", "(Rome)", "Rome-Paris", "«Rome»", "x, Rome."])
def test_punctuation_is_no_part_of_a_word(text: str):
    assert has(text, "Rome") == ["Rome"]


@pytest.mark.parametrize(
    ("text", "found", "others"),
    [
        ("she went to NEW \n York today", ["new  york"], []),
        # Names may begin and end with punctuation, lie within each other, and overlap.
        ("paid in Rial (OMR).", ["Rial (OMR)", "OMR", "(OMR)"], []),
        ("C++11 is not C# 5", ["C#"], ["C++"]),
        ("New York City Hall", ["York", "New York", "New York City", "City Hall"], ["Hall of"]),
        # Letters are compared by what they are, not by their code points.
        ("in ZU\u0308RICH", ["Zürich"], []),
        ("STRASSE", ["Straße"], []),
        ("ΟΔΟΣ", ["οδος"], []),
        ("नमस्ते दिल्ली", ["दिल्ली"], []),
        ("दिल्ली", [], ["दिल्"]),
        # Scripts without spaces need no edges.
        ("我在北京用IBM的机器", ["北京", "IBM"], []),
        ("我在IBMX工作", [], ["IBM"]),
    ],
)
def test_names_are_found_as_a_reader_finds_them(text: str, found: list[str], others: list[str]):
    assert has(text, *found, *others) == found


def test_one_name_may_mean_several_entities_and_an_entity_have_several_names():
    rows = [("Georgia", 4), ("georgia", 2), ("Sakartvelo", 4), ("", 7), (" ", 8)]
    finder = NameFinder((0, *row) for row in rows)
    texts = ("Georgia or Sakartvelo, not ''", "", "Georgian", "Sakartvelo")
    assert find(finder, *texts) == [(0, 2), (0, 4), (3, 4)]
    assert find(finder) == []


def test_each_owner_has_names_of_its_own():
    finder = NameFinder([(1, "Ada", 10), (1, "Bob", 11), (3, "Bob", 30), (4, "", 40)])
    texts = pa.array(["Ada, Bob", "Bob", "Ada, Bob", "Bob", "Bob"])
    text, meaning = finder.find(np.array([1, 1, 3, 4, 2]), texts)
    assert (text.tolist(), meaning.tolist()) == ([0, 0, 1, 2], [10, 11, 11, 30])
    assert find(NameFinder([]), "Ada") == []


def test_no_name_goes_over_from_one_text_to_the_next():
    finder = finder_of(["New York", "日本"])
    texts = ("New", "York", "new", " york", "日", "本", "日本", "x", "New York")
    assert find(finder, *texts) == [(6, 1), (8, 0)]


def test_a_text_begins_and_ends_a_word_whatever_stands_beside_it():
    assert find(finder_of(["Ada"]), "é", "Ada", "é", "Ada\u00a0", "_") == [(1, 0), (3, 0)]


@given(
    texts=st.lists(st.text(alphabet="ab _1é .\tB", max_size=30), max_size=3),
    names=st.lists(st.text(alphabet="ab 1éB", min_size=1, max_size=4), max_size=5),
)
@example(texts=["a  b", "", "a"], names=["a b", "b a"])
def test_regular_expressions_find_the_same_names(texts: list[str], names: list[str]):
    tidy = [name for name in (" ".join(name.split()) for name in names) if name]
    of_name = {str(i): [name] for i, name in enumerate(tidy)}
    expected = {
        (position, int(name))
        for position, text in enumerate(texts)
        for name in named(text, of_name)
    }
    assert find(finder_of(tidy), *texts) == sorted(expected)


def test_folding_a_folded_text_changes_nothing():
    for text in ("  A\u00a0b ", "İI", "ﬁ", "ŉ", "Ǆ"):
        assert fold(fold(text)) == fold(text)


def test_without_the_extra_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ahocorasick_rs", None)
    with pytest.raises(MissingDependencyError, match=re.escape(how_to_install("er"))):
        NameFinder([(0, "a", 0)])


def mentions(graph: ErGraph, *steps: dict[str, object]) -> Mentions:
    table = step_table(steps)
    return find_mentions(graph, assemble(table).steps, table["thought"])


CHAIN = er_graph(
    [entity("Ada"), entity("Bob"), entity("Cy", answers=True), entity("Di"), entity("Eve")],
    relations("Ada-Bob", "Cy-Bob", "Di-Di"),
)


def test_distances_count_relations_in_either_direction_to_the_nearest_answer():
    # Ada -> Bob <- Cy, the answer; Di only knows herself, Eve nobody.
    found = mentions(CHAIN, *trajectory("x", "s a s"))
    np.testing.assert_array_equal(found.answer_distance, [2, 1, 0, np.inf, np.inf])


def test_an_answer_is_at_distance_zero_with_relations_or_without():
    graph = er_graph([entity("Ada", answers=True), entity("Bob", answers=True), entity("Cy")])
    found = mentions(graph, *trajectory("x", "s a s"))
    assert found.answer_distance.tolist() == [0, 0, np.inf]


def test_a_path_may_lead_over_an_entity_that_has_no_name():
    graph = er_graph([entity("Ada"), entity("Bob", answers=True)], relations("Ada-x", "x-Bob"))
    assert mentions(graph, *trajectory("x", "s a s")).answer_distance.tolist() == [2, 0, 1]


def test_every_step_is_paired_with_what_its_texts_name():
    path = ["s", "a", "Ada met Bob and Ada", "a", "nobody", "a", "cy"]
    steps = trajectory("x", path)
    for step, thought in zip(steps, ["Di?", None, "Bob, then Ada"], strict=True):
        step["thought"] = thought
    found = mentions(CHAIN, *steps)
    # Ada 0, Bob 1, Cy 2, Di 3, Eve 4.
    assert found.retrieved_step.tolist() == [0, 0, 2]
    assert found.retrieved_entity.tolist() == [0, 1, 2]
    assert found.cited_step.tolist() == [0, 2, 2]
    assert found.cited_entity.tolist() == [3, 0, 1]


def test_a_task_has_its_own_entities_only():
    graph = er_graph(
        [entity("Ada", task_id="t1", answers=True), entity("Ada", task_id="t0"), entity("Bob")],
        relations("Ada-Bob", task_id="t1"),
    )
    steps = [
        step
        for task in ("t2", "t1", "t0")
        for step in trajectory(task, ["s", "a", "Ada and Bob"], task_id=task)
    ]
    found = mentions(graph, *steps)
    # Groups are sorted by task: t0 knows Ada and Bob, t1 only Ada (Bob has no name), t2 nothing.
    assert found.retrieved_step.tolist() == [0, 0, 1]
    assert len(set(found.retrieved_entity.tolist())) == 3
    distances = found.answer_distance[found.retrieved_entity]
    assert distances.tolist() == [np.inf, np.inf, 0]
    assert found.has_entities.tolist() == [True, True, False]
    assert found.has_answer.tolist() == [False, True, False]


def test_a_thought_stays_with_its_step_when_rows_are_scrambled_and_some_are_left_out():
    dead = trajectory("dead", ["s", "a", "t"], success=None, thought="Cy")
    steps = trajectory("x", ["s", "a", "t", "a", "u"])
    steps[0]["thought"], steps[1]["thought"] = "Ada", "Bob"
    found = mentions(CHAIN, *dead, steps[1], steps[0])
    assert (found.cited_step.tolist(), found.cited_entity.tolist()) == ([0, 1], [0, 1])


def test_a_thought_column_of_nulls_cites_nothing():
    table = step_table(trajectory("x", ["s", "a", "Ada"]))
    nulls = pa.chunked_array([pa.nulls(1, pa.string())])
    assert len(find_mentions(CHAIN, assemble(table).steps, nulls).cited_step) == 0
