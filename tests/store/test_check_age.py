"""Credit of other steps than there are is noticed, and what a killed run left mixed is an error."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from graphcredit.store.checks.run import check_store
from tests.credit.other_version import as_made_before
from tests.worlds import trajectory, worked_example, write_store

FOLDER = "credit/run_id=r0/iteration=000000"
OTHER_STEPS = "it was made of other step shards than there are"


def _credit(store: Store, *settings: str, names: Sequence[str] = ("grpo",)) -> None:
    assign_credit(store, CreditSettings(estimators=configure(names, settings)))


def _found(store: Store) -> set[tuple[str, str, str]]:
    report = check_store(store)
    return {(v.rule.name, v.file, v.found) for v in report.violations}


def test_fresh_credit_has_nothing_to_report(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example(), trajectory("more", "A a B"))
    _credit(store)
    assert _found(store) == set()


def test_credit_without_the_shards_that_came_later_is_stale(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    _credit(store)
    write_store(store.root, worked_example(), trajectory("late", "A a B"))
    assert _found(store) == {("stale_credit", FOLDER, f"credit by grpo: {OTHER_STEPS}")}
    assert check_store(store).errors == ()
    _credit(store)
    assert _found(store) == set()


def test_credit_of_two_configurations_in_one_iteration_is_an_error(tmp_path: Path):
    late = trajectory("late", "A a B")
    store = write_store(tmp_path / "s", worked_example(), late)
    _credit(store)
    old = store.shards()[1].credit_path.read_bytes()
    _credit(store, "grpo.normalize=none")
    store.shards()[1].credit_path.write_bytes(old)
    (error,) = check_store(store).errors
    assert (error.rule.name, error.file) == ("mixed_credit", FOLDER)
    assert error.found == "credit by grpo: its shards were made in 2 ways"


def test_a_shard_that_a_kill_left_without_an_estimator_is_an_error(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example(), trajectory("more", "A a B"))
    _credit(store)
    later = store.shards()[1].credit_path
    old = later.read_bytes()
    _credit(store, names=["gigpo"])
    later.write_bytes(old)
    assert _found(store) == {("mixed_credit", FOLDER, "credit by gigpo: 1 of 2 shards have none")}
    later.unlink()
    assert _found(store) == {
        ("mixed_credit", FOLDER, f"credit by {name}: 1 of 2 shards have none")
        for name in ("gigpo", "grpo")
    }
    _credit(store, names=["grpo", "gigpo"])
    assert _found(store) == set()


def test_a_kill_after_the_graph_tables_were_renamed_is_an_error(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    _credit(store, names=["gigpo", "grpo"])
    shard = store.shards()[0].credit_path
    old = shard.read_bytes()
    _credit(store, "grpo.normalize=none")
    shard.write_bytes(old)
    reason = "the graph tables are of another run of credit than its shards"
    assert _found(store) == {("mixed_credit", FOLDER, f"credit by grpo: {reason}")}


def test_credit_of_steps_that_were_written_again_is_stale(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    _credit(store)
    write_store(store.root, worked_example())
    assert _found(store) == set(), "the same steps"
    mended = [row | {"reward": row["reward"] * 2} for row in worked_example()]
    write_store(store.root, mended)
    assert _found(store) == {("stale_credit", FOLDER, f"credit by grpo: {OTHER_STEPS}")}


def test_credit_and_history_of_an_older_formula_are_noticed(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    both = ("grpo", "spo3")
    _credit(store, names=both)
    assert _found(store) == set()
    as_made_before(store)
    found = {(rule, found) for rule, _, found in _found(store)}
    assert ("old_history", "another version, or none stated") in found
    _credit(store, names=both)
    assert _found(store) == set()


@pytest.mark.parametrize("is_lost", [False, True])
def test_mixed_credit_is_named_until_it_is_assigned_again(tmp_path: Path, is_lost: bool):
    store = write_store(tmp_path / "s", worked_example(), *(trajectory(n, "A a B") for n in "uv"))
    _credit(store, names=["gigpo", "grpo"])
    path = store.shards()[1].credit_path
    old = path.read_bytes()
    _credit(store, "grpo.normalize=none")
    path.unlink() if is_lost else path.write_bytes(old)
    found = {(each.rule.name, each.file, each.takes_out) for each in check_store(store).errors}
    assert found == {("mixed_credit", FOLDER, None)}
    _credit(store)
    assert _found(store) == set()
