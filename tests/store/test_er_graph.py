"""The entity-relation graph on disk: merged task by task, whole at any time."""

from multiprocessing import get_context
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from graphcredit.store import create_store
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import InputError
from graphcredit.store.parquet.er_graph import merge_er_graph, read_er_graph
from tests.credit.entity_world import entity, er_graph
from tests.store.writers import graph_of, merge_five_graphs


def test_what_is_merged_is_read_again(tmp_path: Path):
    store = create_store(tmp_path / "s")
    merge_er_graph(store, graph_of("t0"))
    assert read_er_graph(store).entities.to_pylist() == graph_of("t0").entities.to_pylist()
    assert read_er_graph(store).relations.to_pylist() == graph_of("t0").relations.to_pylist()
    assert read_er_graph(store).digest() == read_er_graph(store).digest()


def test_a_task_that_is_merged_again_is_replaced_and_others_stay(tmp_path: Path):
    store = create_store(tmp_path / "s")
    merge_er_graph(store, graph_of("t0", "t1"))
    merge_er_graph(store, er_graph([entity("Cy", task_id="t1"), entity("Di", task_id="t2")]))
    found = read_er_graph(store)
    names = zip(
        found.entities["task_id"].to_pylist(), found.entities["name"].to_pylist(), strict=True
    )
    assert list(names) == [("t0", "Ada"), ("t0", "Bob"), ("t1", "Cy"), ("t2", "Di")]
    assert found.relations["task_id"].to_pylist() == ["t0"]


def test_what_is_known_already_is_not_written_again(tmp_path: Path):
    store = create_store(tmp_path / "s")
    merge_er_graph(store, graph_of("t1", "t0"))
    paths = sorted((store.root / "er_graph").iterdir())
    before = [path.stat().st_ino for path in paths]
    merge_er_graph(store, graph_of("t0"))
    assert [path.stat().st_ino for path in paths] == before
    assert [path.name for path in paths] == ["entities.parquet", "relations.parquet"]


def test_processes_that_merge_at_a_time_lose_nothing(tmp_path: Path):
    store = create_store(tmp_path / "s")
    context = get_context("spawn")
    processes = [context.Process(target=merge_five_graphs, args=(store.root, n)) for n in (0, 5)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    tasks = read_er_graph(store).entities["task_id"].to_pylist()
    assert sorted(set(tasks)) == [f"t{number}" for number in range(10)]
    assert len(pq.read_table(store.root / "er_graph" / "relations.parquet")) == 10


def test_a_merged_graph_keeps_every_rule(tmp_path: Path):
    store = create_store(tmp_path / "s")
    merge_er_graph(store, graph_of("t0"))
    assert list(check_store(store).violations) == []


def test_a_store_without_a_graph_says_how_to_get_one(tmp_path: Path):
    with pytest.raises(InputError, match=r"found no entities\.parquet.*graphcredit er-graph"):
        read_er_graph(create_store(tmp_path / "s"))
