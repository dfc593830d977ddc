"""Credit is current only while all that it was made of is as it was; whoever shows it says so."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any, cast

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from graphcredit.cli.main import app
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store, open_store
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import InputError
from graphcredit.store.parquet.er_graph import merge_er_graph
from graphcredit.store.parquet.shards import fingerprint
from graphcredit.store.provenance import configuration
from graphcredit.store.provenance.freshness import credit_freshness, doubts
from graphcredit.store.provenance.sources import Sources
from graphcredit.store.sql.catalog import connect, run_trusted_query
from graphcredit.store.sql.sandbox import run_query
from graphcredit.trainer.data.credit_columns import check_credit
from tests.credit.entity_world import entity, er_graph
from tests.credit.other_version import as_made_before
from tests.worlds import trajectory, worked_example, write_store

STATES = "FROM credit_state ORDER BY ALL"
NAMES = ("gigpo", "grpo", "spo3")
"""Of these, spo3 alone reads earlier iterations."""
MORE = trajectory("more", "A a B")
EARLIER = "it was made of other step shards of earlier iterations than there are"
STEPS = "it was made of other step shards than there are"
RULES = "it was made of other rules of states than there are"
NONE = "1 of 2 shards have none"

Found = dict[tuple[int, str], tuple[str, str]]
"""Iteration and estimator to the state of credit that is not current, and the reason."""
OF_LATER: Found = {(number, "spo3"): ("stale", EARLIER) for number in (2, 3)}


def _credit(store: Store, *names: str, options: tuple[str, ...] = (), **where: Any) -> list[str]:
    settings = CreditSettings(estimators=configure(names, options))
    reports = assign_credit(store, settings, **where)
    return [notice for report in reports.values() for notice in report.notices]


@pytest.fixture(scope="module")
def credited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return three iterations with credit by all of `NAMES`; the first has two shards."""
    root = tmp_path_factory.mktemp("credited") / "s"
    write_store(root, worked_example(), MORE, iteration=1)
    for number in (2, 3):
        store = write_store(root, worked_example(), iteration=number)
    _credit(store, *NAMES)
    return root


@pytest.fixture
def store(credited: Path, tmp_path: Path) -> Store:
    return open_store(copytree(credited, tmp_path / "s"))


def _found(store: Store) -> Found:
    """Return what credit is not current: in SQL, for the checks and for the trainer alike."""
    states = credit_freshness(store)
    with connect(store) as connection:
        rows = connection.sql(STATES).fetchall()
    assert rows == sorted((s.run_id, s.iteration, s.estimator, s.state, s.reason) for s in states)
    checked = check_store(store)
    told = {(v.rule.name, v.file, v.found) for v in (*checked.errors, *checked.notices)}
    assert {each for each in told if each[0] in ("stale_credit", "mixed_credit")} == {
        (f"{s.state}_credit", f"credit/run_id=r0/iteration={s.iteration:06d}", words)
        for s in states
        for words in [f"credit by {s.estimator}: {s.reason}"]
        if s.state in ("stale", "mixed")
    }
    assert {(error.rule.name, error.takes_out) for error in checked.errors} <= {
        ("mixed_credit", None)
    }
    assert bool(doubts(states)) == any(each.state in ("stale", "mixed") for each in states)
    for each in states:
        shards = store.shards(each.run_id, each.iteration)
        column = f"{each.estimator}_advantage"
        if each.is_doubtful:
            with pytest.raises(
                InputError,
                match=rf"(is stale|is mixed|is missing|the column).*STORE -e {each.estimator}",
            ):
                check_credit(store, shards, column)
        else:
            check_credit(store, shards, column)
    return {
        (each.iteration, each.estimator): (each.state, each.reason)
        for each in states
        if each.state != "current"
    }


def _same_steps(store: Store) -> None:
    write_store(store.root, worked_example(), MORE, iteration=1)


def _elsewhere(store: Store) -> None:
    write_store(store.root, worked_example(), iteration=7)
    write_store(store.root, worked_example(), run_id="r1", iteration=0)


def _late(store: Store) -> None:
    write_store(store.root, worked_example(), MORE, trajectory("late", "A a B"), iteration=1)


def _rewritten(store: Store) -> None:
    mended = [row | {"reward": row["reward"] * 2} for row in worked_example()]
    write_store(store.root, mended, MORE, iteration=1)


def _earlier(store: Store) -> None:
    write_store(store.root, worked_example(), iteration=0)


def _ruled(store: Store) -> None:
    store.state_rules_path.write_text('[[ignore]]\ntext = "B"\n', encoding="utf-8")


def _killed(name: str, *options: str, shards: slice) -> Callable[[Store], None]:
    """Return what a kill amid the renames does: it leaves some shards of iteration 1 as before."""

    def change(store: Store) -> None:
        paths = [shard.credit_path for shard in store.shards("r0", 1)[shards]]
        before = [path.read_bytes() for path in paths]
        _credit(store, name, options=options, iteration=1)
        for path, content in zip(paths, before, strict=True):
            path.write_bytes(content)

    return change


def _lost(store: Store) -> None:
    store.shards("r0", 1)[1].credit_path.unlink()


def _of_another_program(store: Store) -> None:
    for shard in store.shards("r0", 1):
        table = pq.ParquetFile(shard.credit_path).read()
        pq.write_table(table.replace_schema_metadata(None), shard.credit_path)


def _of_all(state: str, reason: str, *iterations: int) -> Found:
    return {(number, name): (state, reason) for number in iterations for name in NAMES}


CHANGES: Mapping[str, tuple[Callable[[Store], None], Found]] = {
    "the same steps": (_same_steps, {}),
    "another iteration, another run": (_elsewhere, {}),
    "a shard that came later": (_late, _of_all("stale", STEPS, 1) | OF_LATER),
    "steps that were written again": (_rewritten, _of_all("stale", STEPS, 1) | OF_LATER),
    "an earlier iteration": (_earlier, {(1, "spo3"): ("stale", EARLIER)} | OF_LATER),
    "rules of states": (_ruled, _of_all("stale", RULES, 1, 2, 3)),
    "a kill, another option": (
        _killed("grpo", "grpo.normalize=none", shards=slice(1, 2)),
        {(1, "grpo"): ("mixed", "its shards were made in 2 ways")},
    ),
    "a kill, another estimator": (
        _killed("rloo", shards=slice(1, 2)),
        {(1, "rloo"): ("mixed", NONE)},
    ),
    "a kill after the graph": (
        _killed("grpo", "grpo.normalize=none", shards=slice(None)),
        {(1, "grpo"): ("mixed", "the graph tables are of another run of credit than its shards")},
    ),
    "credit of a shard that is lost": (_lost, _of_all("mixed", NONE, 1)),
    "another program": (
        _of_another_program,
        _of_all("foreign", "its shards do not say what it was made of", 1),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_everybody_sees_what_a_change_makes_of_credit(store: Store, name: str):
    change, expected = CHANGES[name]
    change(store)
    assert _found(store) == expected
    _credit(store, *NAMES, "rloo")
    assert {each.state for each in credit_freshness(store)} == {"current"}


def test_credit_of_an_iteration_that_is_gone_is_stale_where_it_was_read(store: Store):
    for shard in store.shards("r0", 1):
        shard.path.unlink()
    states = credit_freshness(store)
    found = {(each.iteration, each.estimator): each.state for each in states}
    assert found == {
        (number, name): "stale" if name == "spo3" else "current"
        for number in (2, 3)
        for name in NAMES
    }


def test_columns_that_are_kept_are_said_to_be_stale(store: Store):
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
    assert _found(store) == {}
    merge_er_graph(store, er_graph([entity("A", answers=True), entity("C")]))
    other: Found = {(0, "sapo"): ("stale", "it was made of other entities than there are")}
    assert _found(store) == other
    _credit(store, "sapo")
    assert _found(store) == {}
    (store.root / "er_graph" / "entities.parquet").unlink()
    (state,) = credit_freshness(store)
    assert (state.state, state.reason) == other[0, "sapo"]


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


def test_iterations_alike_are_one_line_and_only_a_few_lines_are_told(store: Store):
    write_store(store.root, worked_example(), iteration=4)
    _credit(store, "spo3")
    _earlier(store)
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


def test_each_iteration_is_hashed_once(store: Store, monkeypatch: pytest.MonkeyPatch):
    hashed: list[str] = []

    def counted(paths: list[Path]) -> str:
        hashed.append(paths[0].parent.name)
        return fingerprint(paths)

    monkeypatch.setattr("graphcredit.store.provenance.sources.fingerprint", counted)
    assert len(credit_freshness(store)) == 3 * len(NAMES)
    assert sorted(hashed) == [f"iteration={number:06d}" for number in (1, 2, 3)]


def test_credit_is_marked_by_the_sources_that_its_inputs_name(store: Store):
    sources = Sources(store, store.shards())
    marks = {
        name: set(sources.marks("r0", 2, {"sources": [name]})) - {"steps", "state_rules"}
        for name in ("earlier", "entities", "steps")
    }
    assert marks == {"earlier": {"earlier"}, "entities": {"entities"}, "steps": set()}


def test_credit_of_states_by_another_version_of_the_merge_is_stale(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    merge = MergeSettings(merge="segments")
    settings = CreditSettings(estimators=configure(["graphgpo"]), merge=merge)
    assign_credit(store, settings, iteration=1)
    assert _found(store) == {}
    monkeypatch.setitem(cast(dict[str, int], configuration.MERGE_VERSIONS), "segments", 5)
    reason = "its states are by version 4 of the merge segments, which is at 5"
    assert _found(store) == {(1, "graphgpo"): ("stale", reason)}


def test_credit_and_history_of_an_older_formula_are_noticed(store: Store):
    as_made_before(store)
    found = {(each.rule.name, each.found) for each in check_store(store).violations}
    assert ("old_history", "another version, or none stated") in found
    _credit(store, *NAMES)
    assert check_store(store).violations == ()
