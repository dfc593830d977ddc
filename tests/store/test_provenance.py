"""Credit is current only while all that it was made of is as it was; whoever shows it says so."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from graphcredit.cli.main import app
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import InputError
from graphcredit.store.parquet.er_graph import merge_er_graph
from graphcredit.store.provenance import configuration
from graphcredit.store.provenance.freshness import credit_freshness, doubts
from graphcredit.store.provenance.sources import Sources
from graphcredit.store.sql.catalog import connect, run_trusted_query
from graphcredit.store.sql.sandbox import run_query
from graphcredit.trainer.data.credit_columns import check_credit
from tests.credit.entity_world import entity, er_graph
from tests.worlds import trajectory, worked_example, write_store

STATES = "FROM credit_state ORDER BY ALL"


def _three_iterations(root: Path) -> Store:
    for number in (1, 2, 3):
        store = write_store(root, worked_example(), iteration=number)
    return store


def _credit(store: Store, name: str, **where: Any) -> list[str]:
    settings = CreditSettings(estimators=configure([name]))
    reports = assign_credit(store, settings, **where)
    return [notice for report in reports.values() for notice in report.notices]


def _stale(store: Store) -> list[int]:
    """Return the iterations whose credit is stale, as everybody sees it."""
    states = credit_freshness(store)
    found = [state.iteration for state in states if state.state == "stale"]
    checked = check_store(store)
    assert checked.errors == ()
    assert [v.file for v in checked.notices if v.rule.name == "stale_credit"] == [
        f"credit/run_id=r0/iteration={number:06d}" for number in found
    ]
    for state in states:
        shards = store.shards("r0", state.iteration)
        if state.state == "stale":
            with pytest.raises(
                InputError, match=r"is stale, it|is stale: its|older than the steps"
            ):
                check_credit(store, shards, f"{state.estimator}_advantage")
        else:
            check_credit(store, shards, f"{state.estimator}_advantage")
    return found


def _late(store: Store) -> None:
    write_store(store.root, worked_example(), trajectory("late", "A a B"), iteration=1)


def _new(store: Store) -> None:
    write_store(store.root, worked_example(), iteration=0)


def _removed(store: Store) -> None:
    store.shards("r0", 1)[0].path.unlink()


def _rewritten(store: Store) -> None:
    mended = [row | {"reward": row["reward"] * 2} for row in worked_example()]
    write_store(store.root, mended, iteration=1)


@pytest.mark.parametrize("change", [_new, _rewritten])
def test_credit_is_stale_when_an_iteration_that_it_reads_changes(
    tmp_path: Path, change: Callable[[Store], None]
):
    store = _three_iterations(tmp_path / "s")
    _credit(store, "spo3")
    assert _stale(store) == []
    change(store)
    assert _stale(store) == [1, 2, 3]
    _credit(store, "spo3")
    assert _stale(store) == []


@pytest.mark.parametrize("name", ["spo3", "graphgpo"])
def test_credit_of_a_shard_that_was_removed_since_is_stale(tmp_path: Path, name: str):
    store = _three_iterations(tmp_path / "s")
    _credit(store, name)
    _removed(store)
    states = {state.iteration: state.state for state in credit_freshness(store)}
    assert states == dict.fromkeys((2, 3), "stale" if name == "spo3" else "current")


def test_other_iterations_and_runs_do_not_matter(tmp_path: Path):
    store = _three_iterations(tmp_path / "s")
    _credit(store, "graphgpo")
    write_store(store.root, worked_example(), iteration=7)
    write_store(store.root, worked_example(), run_id="r1", iteration=0)
    assert _stale(store) == []


def test_columns_that_are_kept_are_said_to_be_stale(tmp_path: Path):
    store = _three_iterations(tmp_path / "s")
    _credit(store, "spo3")
    _late(store)
    (notice,) = _credit(store, "grpo", iteration=3)
    assert notice == (
        "the spo3 columns that were kept are stale: it was made of other step shards of earlier "
        "iterations than there are. Run credit again with --estimator spo3"
    )


def test_entities_of_other_tasks_do_not_matter_and_those_of_its_own_do(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    merge_er_graph(store, er_graph([entity("A", answers=True), entity("B")]))
    _credit(store, "sapo")
    more = [entity(name, task_id="t9") for name in "abcdefghijk"]
    merge_er_graph(store, er_graph(more))
    assert _stale(store) == []
    merge_er_graph(store, er_graph([entity("A", answers=True), entity("C")]))
    assert _stale(store) == [0]
    _credit(store, "sapo")
    assert _stale(store) == []
    (store.root / "er_graph" / "entities.parquet").unlink()
    (state,) = credit_freshness(store)
    assert (state.state, state.reason) == ("stale", "it was made of other entities than there are")


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return what a kill amid the renames leaves: gigpo in one shard of two, rloo in both."""
    root = tmp_path_factory.mktemp("mixed") / "s"
    store = write_store(root, worked_example(), trajectory("more", "A a B"))
    _credit(store, "rloo")
    path = store.shards()[1].credit_path
    old = path.read_bytes()
    _credit(store, "gigpo")
    path.write_bytes(old)
    return store


MIXED = ("r0", 0, "gigpo", "mixed", "1 of 2 shards have none")
LINE = (
    "the credit of run r0, iteration 0 by gigpo is mixed: 1 of 2 shards have none. Run "
    "`graphcredit credit STORE -e gigpo --run r0 --iteration 0` again"
)


@pytest.mark.slow
def test_every_query_says_which_credit_is_mixed(mixed: Store):
    rows = [MIXED, ("r0", 0, "rloo", "current", "")]
    locked, trusted = run_query(mixed, STATES), run_trusted_query(mixed, STATES)
    for result in (locked, trusted):
        assert [tuple(row.values()) for row in result.table.to_pylist()] == rows
        assert result.doubts == (LINE,)
    with connect(mixed) as connection:
        assert connection.sql(STATES).fetchall() == rows


@pytest.mark.parametrize("options", [["--unlocked"], []])
def test_sql_says_it_on_stderr(mixed: Store, options: list[str]):
    query = [str(mixed.root), "SELECT 1 AS one", "--format", "csv"]
    done = CliRunner().invoke(app, ["sql", *query, *options])
    assert (done.exit_code, done.stdout.split()) == (0, ["one", "1"])
    assert done.stderr == f"notice: {LINE}\n"


def test_an_export_says_it_on_stderr(mixed: Store, tmp_path: Path):
    done = CliRunner().invoke(app, ["export", str(mixed.root), str(tmp_path / "out")])
    assert (done.exit_code, done.stderr) == (0, f"notice: {LINE}\n")


def test_foreign_credit_is_neither_current_nor_doubtful(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    _credit(store, "rloo")
    path = store.shards()[0].credit_path
    pq.write_table(pq.ParquetFile(path).read().replace_schema_metadata(None), path)
    (state,) = credit_freshness(store)
    assert (state.state, doubts([state])) == ("foreign", [])


def test_iterations_alike_are_one_line_and_only_a_few_lines_are_told(tmp_path: Path):
    store = _three_iterations(tmp_path / "s")
    write_store(store.root, worked_example(), iteration=4)
    _credit(store, "spo3")
    _new(store)
    states = credit_freshness(store)
    (line,) = doubts(states)
    assert line.startswith(
        "the credit of run r0, 4 iterations from 1 to 4 by spo3 is stale: it was"
    )
    assert line.endswith("Run `graphcredit credit STORE -e spo3 --run r0 --new` again")
    lines = doubts(replace(each, run_id=f"r{each.iteration}") for each in states)
    assert len(lines) == 4
    assert lines[0].startswith("the credit of run r1, iteration 1 by spo3 is stale: it was made of")
    assert lines[-1] == "and 1 more like these: see the view credit_state"


def test_each_iteration_is_hashed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import graphcredit.store.provenance.sources as sources

    store = _three_iterations(tmp_path / "s")
    _credit(store, "spo3")
    hashed: list[str] = []
    fingerprint = sources.fingerprint

    def counted(paths: list[Path]) -> str:
        hashed.extend(path.parent.name for path in paths)
        return fingerprint(paths)

    monkeypatch.setattr(sources, "fingerprint", counted)
    assert len(credit_freshness(store)) == 3
    assert sorted(hashed) == [f"iteration={number:06d}" for number in (1, 2, 3)]


def test_credit_is_marked_by_the_sources_that_its_inputs_name(tmp_path: Path):
    store = _three_iterations(tmp_path / "s")
    sources = Sources(store, store.shards())
    marks = {
        name: set(sources.marks("r0", 2, {"sources": [name]})) - {"steps", "state_rules"}
        for name in ("earlier", "entities", "steps")
    }
    assert marks == {"earlier": {"earlier"}, "entities": {"entities"}, "steps": set()}


def test_credit_of_states_by_another_version_of_the_merge_is_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = _three_iterations(tmp_path / "s")
    merges = [MergeSettings(merge=name) for name in ("segments", "exact")]
    for number, merge in enumerate(merges, start=1):
        settings = CreditSettings(estimators=configure(["graphgpo"]), merge=merge)
        assign_credit(store, settings, iteration=number)
    assert _stale(store) == []
    monkeypatch.setitem(cast(dict[str, int], configuration.MERGE_VERSIONS), "segments", 5)
    assert _stale(store) == [1]
    (state,) = credit_freshness(store, iteration=1)
    assert state.reason == "its states are by version 4 of the merge segments, which is at 5"


def test_rules_of_states_that_came_later_make_all_credit_stale(tmp_path: Path):
    store = _three_iterations(tmp_path / "s")
    _credit(store, "grpo")
    store.state_rules_path.write_text('[[ignore]]\ntext = "B"\n', encoding="utf-8")
    assert _stale(store) == [1, 2, 3]
    assert {each.reason for each in credit_freshness(store)} == {
        "it was made of other rules of states than there are"
    }
