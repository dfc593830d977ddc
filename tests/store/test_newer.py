"""A file of a newer schema version is refused by everyone, and stays as it is."""

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from graphcredit.collector.playing.branching.allocation import Allocation
from graphcredit.credit.audit.run import audit
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store, read_steps
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import SchemaError
from graphcredit.store.parquet.er_graph import ErGraph, merge_er_graph, read_er_graph
from graphcredit.store.parquet.export import export_store
from graphcredit.store.sql.catalog import run_trusted_query
from graphcredit.store.sql.sandbox import run_query
from graphcredit.trainer.data.parts import RunIteration
from graphcredit.trainer.data.step_filters import Filters
from graphcredit.trainer.data.step_index import read_index
from graphcredit.viewer.queries.iterations import iteration_facts
from tests.store.test_digest import SETTINGS, verified_store

Reader = Callable[[Store], object]


def _sql(store: Store) -> object:
    return run_query(store, "SELECT 1")


def _credit(store: Store) -> object:
    return assign_credit(store, SETTINGS)


def _train(store: Store) -> object:
    filters = Filters(max_tokens=100)
    return read_index([RunIteration(store, "r0", 0)], column="grpo_advantage", filters=filters)


def _export(store: Store) -> object:
    return export_store(store, store.root.with_name("out"))


def _allocation(store: Store) -> object:
    return Allocation.read(store, run_id="r0", task_ids=["t0"], tree_size=8)


def _merge_entities(store: Store) -> None:
    entities, relations = (
        pq.read_table(store.root / "er_graph" / f"{name}.parquet")
        for name in ("entities", "relations")
    )
    merge_er_graph(store, ErGraph(entities=entities.slice(1), relations=relations.slice(1)))


VIEWS: tuple[Reader, ...] = (
    _sql,
    lambda store: run_trusted_query(store, "SELECT 1"),
    lambda store: iteration_facts(store, run_id="r0"),
    lambda store: iteration_facts(store, run_id="r0", iteration=0),
    audit,
)
READERS: dict[str, tuple[Reader, ...]] = {
    "steps": (*VIEWS, _credit, _train, _export, lambda store: list(read_steps(store))),
    "credit": (*VIEWS, _credit, _train, _export),
    "graph/run_id=r0/iteration=000000/nodes": (*VIEWS, _credit),
    "graph/run_id=r0/iteration=000000/edges": (*VIEWS, _credit),
    "history": (*VIEWS, _credit, _allocation),
    "er_graph/entities": (read_er_graph, _merge_entities),
    "er_graph/relations": (read_er_graph, _merge_entities),
}


def _make_newer(path: Path) -> None:
    table = pq.read_table(path, partitioning=None)
    newer = {**table.schema.metadata, b"graphcredit.schema_version": b"99"}
    pq.write_table(table.replace_schema_metadata(newer), path)


def _relative(store: Store, path: Path) -> str:
    return path.relative_to(store.root).as_posix()


def _contents(store: Store) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in store.root.rglob("*.parquet")}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("place", READERS)
def test_a_newer_file_is_refused_by_everyone_and_stays_as_it_is(tmp_path: Path, place: str):
    store = verified_store(tmp_path / "store")
    path = next(
        path
        for path in sorted(store.root.rglob("*.parquet"))
        if _relative(store, path).startswith(place)
    )
    _make_newer(path)
    before = _contents(store)
    for reader in READERS[place]:
        with pytest.raises(SchemaError, match=f"{path.name} has .* install a newer grap"):
            reader(store)
    (error,) = check_store(store).errors
    assert (error.rule.name, error.file) == ("schema_version", _relative(store, path))
    assert "install a newer graphcredit" in error.message
    assert error.takes_out is None
    assert _contents(store) == before


def test_a_newer_file_where_this_program_has_none_is_not_moved(tmp_path: Path):
    store = verified_store(tmp_path / "store")
    nodes = next(store.root.rglob("nodes.parquet"))
    regions = nodes.with_name("regions.parquet")
    regions.write_bytes(nodes.read_bytes())
    assert [error.rule.name for error in check_store(store).errors] == ["path_name"]
    _make_newer(regions)
    assert [error.rule.name for error in check_store(store).errors] == ["schema_version"]
