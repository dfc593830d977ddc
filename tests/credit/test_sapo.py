"""SAPO worked out by hand, and the stage that gives it its entities."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.credit.estimators.sapo import Sapo
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.inputs.table import MENTIONS
from graphcredit.credit.iteration.assemble import assemble
from graphcredit.credit.iteration.report import CreditReport
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from graphcredit.store.errors import InputError, OptionError, SchemaError
from graphcredit.store.parquet.er_graph import ErGraph, merge_er_graph
from graphcredit.store.schema import CONFIGURATION_KEY
from tests.credit.assembled import assembled
from tests.credit.entity_world import entity, er_graph, relations
from tests.worlds import step_table, trajectory, worked_example, write_store

GRAPH = er_graph(
    [entity("Ada"), entity("Bob", "Robert"), entity("Cy", answers=True), entity("Di")],
    relations("Ada-Bob", "Cy-Bob"),
)
"""d: Ada 2, Bob 1, Cy 0, Di without a path; so c is 1/4, 1/2, 1 and 0."""


def with_thoughts(steps: list[dict[str, Any]], *thoughts: str | None) -> list[dict[str, Any]]:
    return [step | {"thought": t} for step, t in zip(steps, thoughts, strict=True)]


def example() -> list[dict[str, Any]]:
    """Return x, which finds the answer, and y, which does not."""
    x = trajectory(
        "x",
        ["start", "a", "Ada and Bob", "a", "Robert, Di", "a", "Cy"],
        rewards=[0, 0, 1],
        success=True,
    )
    y = trajectory("y", ["start", "a", "Ada", "a", "nobody"])
    return [*with_thoughts(x, "Bob?", "Bob helps", "Bob or Ada"), *with_thoughts(y, None, None)]


def parts(
    rows: list[dict[str, Any]], graph: ErGraph = GRAPH, **options: Any
) -> dict[str, list[float]]:
    batch = assembled(step_table(rows), [MENTIONS], graph).batch
    found = Sapo(**options).assign(batch)
    return {name: values.tolist() for name, values in found.items()}


def run(store: Store, *settings: str) -> CreditReport:
    wanted = CreditSettings(estimators=configure(["sapo"], settings))
    (report,) = assign_credit(store, wanted).values()
    return report


def test_the_parts_of_the_example():
    found = parts(example())
    # x0 thinks of Bob before anything was found: no citation. It finds Ada 1/4 and Bob 1/2.
    # x1 cites Bob 1/2; Robert is Bob again, and Di is worth 0.
    # x2 cites Ada 1/4, Bob was cited before, and finds Cy 1. y0 finds Ada 1/4, y1 nothing.
    assert found["step_reward"] == [0.75, 0.5, 1.25, 0.25, 0]
    # x: mean 5/6, std sqrt((1/12² + 1/3² + 5/12²) / 2) = 0.38188; the last is 1.0911, clipped.
    # y: ±0.125 / 0.17678.
    expected = [-0.2182, -0.8729, 1, 0.7071, -0.7071]
    assert found["step_advantage"] == pytest.approx(expected, abs=1e-4)
    # Returns 1 and 0: ±0.5 / 0.70711.
    assert found["episode_advantage"] == pytest.approx([0.7071] * 3 + [-0.7071] * 2, abs=1e-4)
    # 0.7071 · (1 + 0.5 · A_g) for x, -0.7071 · (1 - 0.5 · A_g) for y.
    expected = [0.6300, 0.3985, 1.0607, -0.4571, -0.9571]
    assert found["advantage"] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("setting", ["decay=0.5", "decay=inf", "strength=-1", "normalize=mean"])
def test_an_option_out_of_range_is_refused(setting: str):
    with pytest.raises(OptionError, match=f"sapo.{setting.partition('=')[0]} must be"):
        configure(["sapo"], [f"sapo.{setting}"])


def test_a_batch_without_mentions_is_refused():
    with pytest.raises(InputError, match="needs the input mentions"):
        Sapo().assign(assemble(step_table(example())).batch)


def test_the_stage_writes_what_the_example_says(tmp_path: Path):
    rows = example()
    store = write_store(tmp_path / "s", rows[1::2], rows[::2])
    merge_er_graph(store, GRAPH)
    report = run(store, "sapo.strength=0.5")
    assert report.notices == []
    tables = [pq.ParquetFile(shard.credit_path).read() for shard in store.shards()]
    found = {
        (row["trajectory_id"], row["step_index"]): row for t in tables for row in t.to_pylist()
    }
    assert found["x", 2]["sapo_step_reward"] == 1.25
    assert found["y", 0]["sapo_advantage"] == pytest.approx(-0.4571, abs=1e-4)
    made_by = json.loads(tables[0].schema.metadata[CONFIGURATION_KEY])["sapo"]
    assert made_by["entities"] == GRAPH.digest()


def test_groups_without_entities_or_an_answer_are_counted_and_told(tmp_path: Path):
    rows = [step for task in ("t0", "t1", "t2", "t3") for step in worked_example(task)]
    store = write_store(tmp_path / "s", rows)
    merge_er_graph(store, er_graph([entity("A", answers=True), entity("B", task_id="t1")]))
    report = run(store)
    assert (report.num_groups_without_entities, report.num_groups_without_answer) == (2, 1)
    assert report.notices == [
        "2 of 4 groups have no entities in er_graph/: sapo's step reward is 0 there",
        "1 of 4 groups has no entity that is the answer in er_graph/: sapo's step reward is 0 "
        "there",
    ]


@pytest.mark.parametrize("missing", ["entities", "relations"])
def test_a_store_without_entities_is_refused_with_what_to_do(tmp_path: Path, missing: str):
    store = write_store(tmp_path / "s", example())
    merge_er_graph(store, GRAPH)
    (store.root / "er_graph" / f"{missing}.parquet").unlink()
    with pytest.raises(InputError, match=rf"found no {missing}\.parquet.*collect STORE --env sea"):
        run(store)
    assert not (store.root / "credit").exists()


def test_entities_that_another_program_wrote_are_read(tmp_path: Path):
    store = write_store(tmp_path / "s", example())
    (store.root / "er_graph").mkdir()
    columns = GRAPH.entities.to_pydict() | {"score": [1.0] * 4}
    foreign = pa.table({n: columns[n] for n in ("is_answer", "score", "name", "entity_id")})
    task = pa.array(["t0"] * 4).dictionary_encode()
    pq.write_table(foreign.append_column("task_id", task), store.root / "er_graph/entities.parquet")
    pq.write_table(GRAPH.relations, store.root / "er_graph/relations.parquet")
    run(store)
    credit = pq.ParquetFile(store.shards()[0].credit_path).read()
    # Without the alias, Robert is nobody; otherwise as in the example.
    assert credit["sapo_step_reward"].to_pylist() == [0.75, 0.5, 1.25, 0.25, 0]


def test_an_entity_without_a_name_is_refused_with_its_file(tmp_path: Path):
    store = write_store(tmp_path / "s", example())
    merge_er_graph(store, GRAPH)
    path = store.root / "er_graph" / "entities.parquet"
    table = pq.read_table(path)
    names = pa.array([None, "b", "c", "d"], pa.string())
    position = table.column_names.index("name")
    pq.write_table(table.set_column(position, pa.field("name", pa.string()), names), path)
    with pytest.raises(SchemaError, match=r"entities\.parquet: name must not be null: found 1"):
        run(store)
