"""Credit that is older than its steps, or that a killed run left mixed, is noticed."""

from pathlib import Path

from graphcredit.credit.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.credit.table import configure
from graphcredit.store import Store
from graphcredit.store.checks import check_store
from tests.worlds import trajectory, worked_example, write_store


def _credit(store: Store, *settings: str) -> None:
    assign_credit(store, CreditSettings(estimators=configure(["grpo"], settings)))


def _notices(store: Store) -> set[tuple[str, str]]:
    report = check_store(store)
    assert report.errors == ()
    return {(notice.rule.name, Path(notice.file).name) for notice in report.notices}


def test_fresh_credit_has_nothing_to_report(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example(), trajectory("more", "A a B"))
    _credit(store)
    assert _notices(store) == set()


def test_credit_without_the_shards_that_came_later_is_stale(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    _credit(store)
    write_store(store.root, worked_example(), trajectory("late", "A a B"))
    assert _notices(store) == {("stale_credit", "w0-000000.parquet")}
    _credit(store)
    assert _notices(store) == set()


def test_credit_of_two_configurations_in_one_iteration_is_mixed(tmp_path: Path):
    late = trajectory("late", "A a B")
    store = write_store(tmp_path / "s", worked_example(), late)
    _credit(store)
    old = store.shards()[1].credit_path.read_bytes()
    _credit(store, "grpo.normalize=none")
    store.shards()[1].credit_path.write_bytes(old)
    assert _notices(store) == {("mixed_credit", "w1-000000.parquet")}


def test_a_shard_that_a_kill_left_without_an_estimator_is_noticed(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example(), trajectory("more", "A a B"))
    _credit(store)
    later = store.shards()[1].credit_path
    old = later.read_bytes()
    assign_credit(store, CreditSettings(estimators=configure(["gigpo"])))
    later.write_bytes(old)
    (notice,) = check_store(store).notices
    assert notice.rule.name == "mixed_credit"
    assert (Path(notice.file).name, notice.found) == ("w1-000000.parquet", "no credit by gigpo")
    later.unlink()
    (notice,) = check_store(store).notices
    assert notice.file.startswith("steps/")
    assert notice.found == "no credit by gigpo, grpo"
    assign_credit(store, CreditSettings(estimators=configure(["grpo", "gigpo"])))
    assert _notices(store) == set()


def test_credit_of_steps_that_were_written_again_is_stale(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    _credit(store)
    write_store(store.root, worked_example())
    assert _notices(store) == set(), "the same steps"
    mended = [row | {"reward": row["reward"] * 2} for row in worked_example()]
    write_store(store.root, mended)
    assert _notices(store) == {("stale_credit", "w0-000000.parquet")}
