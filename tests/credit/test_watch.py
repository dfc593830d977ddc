"""A watch credits each iteration once, when it is at rest."""

import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.watch import CreditWatch, Watched, is_awaited
from graphcredit.store import Store, create_store, open_store
from graphcredit.store.provenance.freshness import credit_freshness
from tests.worlds import trajectory, worked_example, write_store

REST = 10.0


class Clock:
    """A clock that stands still between looks."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def watching(store: Store, clock: Clock, *estimators: str) -> CreditWatch:
    settings = CreditSettings(estimators=configure(estimators or ("grpo",)))
    return CreditWatch(store, settings, rest=REST, clock=clock)


def after(seconds: float, watch: CreditWatch, clock: Clock) -> list[Watched]:
    clock.now += seconds
    return list(watch.look())


def iterations(root: Path, number: int) -> Store:
    """Return a store with the worked example in each of some iterations."""
    for iteration in range(number):
        write_store(root, worked_example(), iteration=iteration)
    return open_store(root)


def places(events: list[Watched]) -> Iterator[tuple[int, bool]]:
    """Yield the iteration of each event, and whether it was credited."""
    yield from ((event.iteration, event.report is not None) for event in events)


def test_an_iteration_is_credited_once_when_it_is_at_rest(tmp_path: Path, clock: Clock):
    store = write_store(tmp_path / "s", worked_example(), iteration=3)
    watch = watching(store, clock)
    assert after(0, watch, clock) == []
    assert after(9, watch, clock) == []
    (credited,) = after(1, watch, clock)
    assert (credited.run_id, credited.iteration, credited.error) == ("r0", 3, None)
    assert credited.report is not None
    assert (credited.report.num_steps, credited.report.num_trajectories) == (8, 3)
    assert [after(100, watch, clock) for _ in range(3)] == [[], [], []]


def test_shards_that_keep_coming_are_credited_together(tmp_path: Path, clock: Clock):
    shards = [worked_example(task) for task in ("t0", "t1", "t2")]
    store = write_store(tmp_path / "s", shards[0])
    watch = watching(store, clock)
    for number in (2, 3):
        assert after(9, watch, clock) == []
        write_store(tmp_path / "s", *shards[:number])
    assert after(9, watch, clock) == []
    (credited,) = after(10, watch, clock)
    assert credited.report is not None
    assert credited.report.num_groups == 3


def test_a_long_credit_makes_the_next_one_wait_as_long(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    store = write_store(tmp_path / "s", worked_example())
    watch = watching(store, clock)
    after(0, watch, clock)
    times = iter([0.0, 60.0])
    monkeypatch.setattr("graphcredit.credit.watch.time.perf_counter", lambda: next(times))
    (credited,) = after(10, watch, clock)
    monkeypatch.undo()
    assert credited.seconds == 60
    write_store(tmp_path / "s", worked_example(), worked_example("t1"))
    assert after(1, watch, clock) == []
    assert after(59, watch, clock) == []
    assert list(places(after(1, watch, clock))) == [(0, True)]


def test_credit_that_is_current_is_left_alone_and_lost_credit_is_made_again(
    tmp_path: Path, clock: Clock
):
    store = iterations(tmp_path / "s", 2)
    first = watching(store, clock)
    after(0, first, clock)
    assert list(places(after(10, first, clock))) == [(0, True), (1, True)]
    second = watching(store, clock)
    after(0, second, clock)
    assert after(10, second, clock) == []
    store.shards()[1].credit_path.unlink()
    assert list(places(after(0, second, clock))) == [(1, True)]


def test_an_earlier_iteration_that_grows_makes_the_later_ones_old(tmp_path: Path, clock: Clock):
    store = iterations(tmp_path / "s", 3)
    watch = watching(store, clock, "spo3")
    after(0, watch, clock)
    assert len(after(10, watch, clock)) == 3
    late = trajectory("late", "A a B", success=True)
    write_store(tmp_path / "s", worked_example(), late, iteration=1)
    assert after(0, watch, clock) == []
    assert list(places(after(10, watch, clock))) == [(1, True), (2, True)]
    assert [state.state for state in credit_freshness(store)] == ["current"] * 3


def test_other_rules_of_states_make_all_credit_old(tmp_path: Path, clock: Clock):
    store = iterations(tmp_path / "s", 2)
    watch = watching(store, clock)
    after(0, watch, clock)
    assert list(places(after(REST, watch, clock))) == [(0, True), (1, True)]
    for rule in ("digits", "uuid"):
        store.state_rules_path.write_text(f'[[ignore]]\ntext = "{rule}"\n')
        assert list(places(after(1, watch, clock))) == [(0, True), (1, True)]
        assert after(1, watch, clock) == []
    store.state_rules_path.unlink()
    assert list(places(after(1, watch, clock))) == [(0, True), (1, True)]


def test_bad_data_is_said_once_and_stops_no_other_iteration(tmp_path: Path, clock: Clock):
    store = iterations(tmp_path / "s", 2)
    path = store.shards()[0].path
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    watch = watching(store, clock)
    after(0, watch, clock)
    failed, credited = after(10, watch, clock)
    assert list(places([failed, credited])) == [(0, False), (1, True)]
    assert failed.error is not None
    assert str(path) in failed.error
    assert after(100, watch, clock) == []
    path.write_bytes(whole)
    os.utime(path)
    assert after(0, watch, clock) == []
    assert list(places(after(10, watch, clock))) == [(0, True)]


def test_an_iteration_without_a_complete_trajectory_waits_for_one(tmp_path: Path, clock: Clock):
    open_one = trajectory("open", "A a B", success=None)
    store = write_store(tmp_path / "s", open_one)
    watch = watching(store, clock)
    after(0, watch, clock)
    (refused,) = after(10, watch, clock)
    assert refused.error is not None
    assert "must have a complete trajectory to credit" in refused.error
    assert after(100, watch, clock) == []
    write_store(tmp_path / "s", open_one, worked_example())
    after(0, watch, clock)
    assert list(places(after(10, watch, clock))) == [(0, True)]


def test_only_the_run_and_iteration_that_were_named_are_credited(tmp_path: Path, clock: Clock):
    for run_id, iteration in product("ab", range(2)):
        write_store(tmp_path / "s", worked_example(), run_id=run_id, iteration=iteration)
    store = open_store(tmp_path / "s")
    settings = CreditSettings(estimators=configure(["grpo"]))
    watch = CreditWatch(store, settings, run_id="b", iteration=1, rest=0, clock=clock)
    assert [(e.run_id, e.iteration) for e in watch.look()] == [("b", 1)]


def test_a_store_is_awaited_where_nothing_else_is(tmp_path: Path):
    assert is_awaited(tmp_path / "s")
    (tmp_path / "s").mkdir()
    assert is_awaited(tmp_path / "s")
    (tmp_path / "s" / "store.json.12345678.tmp").touch()
    assert is_awaited(tmp_path / "s")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "notes.txt").touch()
    assert not is_awaited(tmp_path / "foreign")
    assert not is_awaited(tmp_path / "foreign" / "notes.txt")
    assert not is_awaited(create_store(tmp_path / "made").root)
