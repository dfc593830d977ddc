"""Which entities a trajectory comes across: by hand, and as SAPO's credit has it."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.inputs.entities.find_names import NameFinder
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store.parquet.er_graph import merge_er_graph
from graphcredit.viewer.queries.trajectory import steps
from graphcredit.viewer.search.entities import TaskEntities, mentions, task_entities
from tests.credit.entity_world import entity, er_graph, relations
from tests.credit.test_sapo import GRAPH, example
from tests.worlds import step_table, trajectory, write_store


def test_entities_are_ordered_by_their_distance_to_the_answer():
    known = task_entities(GRAPH, "t0")
    assert [(e.name, e.distance, e.is_answer) for e in known.entities] == [
        ("Cy", 0, True),
        ("Bob", 1, False),
        ("Ada", 2, False),
        ("Di", None, False),
    ]
    assert known.entities[1].names == ("Bob", "Robert")
    assert len(known.relations) == 2


def test_the_nearest_of_several_answers_counts():
    graph = er_graph(
        [entity("A", answers=True), entity("B"), entity("C"), entity("D", answers=True)],
        relations("A-B", "B-C", "D-C"),
    )
    assert [e.distance for e in task_entities(graph, "t0").entities] == [0, 0, 1, 1]


def test_without_an_answer_nothing_has_a_distance():
    graph = er_graph([entity("A"), entity("B")], relations("A-B"))
    assert [e.distance for e in task_entities(graph, "t0").entities] == [None, None]


def test_a_task_that_is_not_in_the_graph_has_no_entities():
    assert task_entities(GRAPH, "t1") == TaskEntities(entities=(), relations=())


def test_each_entity_is_retrieved_once_and_cited_once_after_that():
    rows = [row for row in example() if row["trajectory_id"] == "x"]
    found = mentions(task_entities(GRAPH, "t0"), step_table(rows))
    # The thought of step 0 names Bob, but nothing had retrieved him.
    assert [(m.step, m.entity.name, m.is_citation) for m in found] == [
        (0, "Bob", False),
        (0, "Ada", False),
        (1, "Bob", True),
        (1, "Di", False),
        (2, "Ada", True),
        (2, "Cy", False),
    ]


def test_what_is_found_is_what_sapo_rewarded(tmp_path: Path):
    store = write_store(tmp_path / "s", example())
    merge_er_graph(store, GRAPH)
    assign_credit(store, CreditSettings(estimators=configure(["sapo"])))
    known = task_entities(GRAPH, "t0")
    for name in ("x", "y"):
        table = steps(store, run_id="r0", iteration=0, trajectory_id=name)
        worth = [0.0] * table.num_rows
        for mention in mentions(known, table):
            if mention.entity.distance is not None:
                worth[mention.step] += 2.0**-mention.entity.distance
        assert table["sapo_step_reward"].to_pylist() == pytest.approx(worth)


WORDS = st.text("aA bß_-.9éÉ\u0301東京 \n", min_size=1, max_size=6)


@given(names=st.lists(WORDS, min_size=1, max_size=4), text=st.text("aA bß_-.9éÉ\u0301東京 \n"))
def test_names_are_found_as_the_credit_stage_finds_them(names: list[str], text: str):
    known = task_entities(
        er_graph(replace_id(entity(name), number) for number, name in enumerate(names)), "t0"
    )
    found = mentions(known, step_table(trajectory("x", ["start", "a", text])))
    finder = NameFinder((0, name, number) for number, name in enumerate(names))
    _, expected = finder.find(pa.array([0]).to_numpy(), pa.array([text], pa.large_string()))
    assert sorted(int(m.entity.entity_id) for m in found) == expected.tolist()


def replace_id(row: dict[str, object], number: int) -> dict[str, object]:
    return row | {"entity_id": str(number)}


def test_an_entity_of_several_rows_has_the_names_of_all():
    graph = er_graph([entity("A", answers=True), entity("A") | {"name": "Alpha"}])
    known = task_entities(graph, "t0")
    (found,) = mentions(known, step_table(trajectory("x", ["start", "a", "alpha and a"])))
    assert found.entity.entity_id == "id of A"
    assert found.entity.distance == 0
