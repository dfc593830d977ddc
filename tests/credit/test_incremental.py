"""Crediting the newest iteration of a long run reads none of the old ones."""

from pathlib import Path
from shutil import copytree

import pyarrow.parquet as pq
import pytest

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store, create_store, open_store
from tests.worlds import worked_example, write_store

LAST = 5


def _long_run(root: Path) -> Store:
    store = create_store(root)
    for number in range(LAST + 1):
        write_store(root, worked_example(), iteration=number)
    return store


def _credit(store: Store, iteration: int | None = None) -> None:
    settings = CreditSettings(estimators=configure(["graphgpo", "spo3"]))
    assign_credit(store, settings, iteration=iteration)


def _damage(store: Store, *, before: int) -> None:
    """Leave of old steps only the footers of their files, and rubbish where credit was."""
    for shard in store.shards():
        if shard.iteration < before:
            whole = shard.path.read_bytes()
            footer = 8 + int.from_bytes(whole[-8:-4], "little")
            shard.path.write_bytes(b"\0" * (len(whole) - footer) + whole[-footer:])
            with pytest.raises(OSError, match=r"page header|Thrift"):
                pq.read_table(shard.path)
            if shard.credit_path.exists():
                shard.credit_path.write_bytes(b"\0")


def _last_credit(store: Store) -> list[dict[str, object]]:
    (shard,) = store.shards("r0", LAST)
    return pq.ParquetFile(shard.credit_path).read().to_pylist()


def test_the_newest_iteration_is_credited_without_a_look_at_old_shards(tmp_path: Path):
    store = _long_run(tmp_path / "s")
    (newest,) = store.shards("r0", LAST)
    steps = newest.path.read_bytes()
    newest.path.unlink()
    _credit(store)
    newest.path.write_bytes(steps)
    damaged = open_store(copytree(store.root, tmp_path / "damaged"))
    _damage(damaged, before=LAST)
    _credit(store, LAST)
    _credit(damaged, LAST)
    assert _last_credit(damaged) == _last_credit(store)
    history = store.history_path("r0").read_bytes()
    assert damaged.history_path("r0").read_bytes() == history
    counts = pq.ParquetFile(store.history_path("r0")).read(["state", "num_total"]).to_pylist()
    # Three trajectories of each iteration pass A.
    assert {"state": "A", "num_total": 3 * (LAST + 1)} in counts


def test_estimators_without_a_history_need_no_old_shard_at_all(tmp_path: Path):
    store = _long_run(tmp_path / "s")
    _damage(store, before=LAST)
    assign_credit(store, CreditSettings(estimators=configure(["graphgpo"])), iteration=LAST)
    advantages = [row["graphgpo_advantage"] for row in _last_credit(store)]
    assert advantages[:2] == pytest.approx([0.3692, 1.1547], abs=5e-5)


def test_shards_of_one_iteration_are_listed_without_those_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = _long_run(tmp_path / "s")
    listed: list[str] = []
    iterdir = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda path: listed.append(path.name) or iterdir(path))
    (shard,) = store.shards("r0", LAST)
    assert shard.iteration == LAST
    assert listed == ["steps", "run_id=r0", f"iteration={LAST:06d}"]
