"""Trajectories count as complete exactly where `credit` and `audit` count them so."""

from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from graphcredit.credit.audit.run import audit
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from graphcredit.store.sql.catalog import run_trusted_query
from graphcredit.viewer.queries.iterations import iteration_facts
from graphcredit.viewer.queries.tasks import task_facts
from tests.worlds import trajectory, worked_example, write_store

SETTINGS = CreditSettings(estimators=configure(("graphgpo",)))


def broken() -> list[list[dict[str, Any]]]:
    """Return trajectories of which each breaks one rule."""
    torn = trajectory("torn", "A a B b C")
    torn[1]["state"] = "D"
    swapped = trajectory("swapped", "A a B b C c D")
    swapped[1]["state"], swapped[2]["state"] = swapped[2]["state"], swapped[1]["state"]
    gap = trajectory("gap", "A a B b C c D")
    del gap[1]
    twice = trajectory("twice", "A a B b C c D")
    twice[2] = {**twice[1]}
    early = trajectory("early", "A a B b C")
    early[0] |= {"truncated": True}
    endless = trajectory("open", "A a B b C", success=None)
    worthless = trajectory("worthless", "A a B b C", rewards=[0, float("nan")])
    free = trajectory("free", "A a B b C", cost=0.0)
    return [torn, swapped, gap, twice, early, endless, worthless, free]


def counted_by_credit(store: Store) -> dict[str, int]:
    report = assign_credit(store, SETTINGS)["r0", 0]
    names = ("num_groups", "num_trajectories", "num_incomplete")
    return {name: getattr(report, name) for name in names}


def assert_shown(store: Store, expected: dict[str, int]) -> None:
    (facts,) = iteration_facts(store, run_id="r0").to_pylist()
    assert {name: facts[name] for name in expected} == expected
    names = "task_id, num_trajectories, num_incomplete, success_rate, mean_return, is_degenerate"
    shown = task_facts(store, run_id="r0", iteration=0, estimator=None).select(names.split(", "))
    view = run_trusted_query(store, f"SELECT {names} FROM groups ORDER BY task_id").table
    assert shown.sort_by("task_id").to_pylist() == view.to_pylist()
    sizes = audit(store).numbers["group sizes"]
    assert sum(int(size) * count for size, count in sizes.items()) == facts["num_trajectories"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("rows", broken(), ids=lambda rows: rows[0]["trajectory_id"])
def test_a_broken_trajectory_is_incomplete_with_credit_and_without(
    tmp_path: Path, rows: list[dict[str, Any]]
):
    store = write_store(tmp_path / "s", [*worked_example(), *rows])
    expected = {"num_groups": 1, "num_trajectories": 3, "num_incomplete": 1}
    assert_shown(store, expected)
    assert counted_by_credit(store) == expected
    assert_shown(store, expected)


def test_a_group_without_a_complete_trajectory_is_no_group(tmp_path: Path):
    rows = [{**row, "task_id": "t1"} for row in chain(*broken())]
    store = write_store(tmp_path / "s", [*worked_example(), *rows])
    (facts,) = iteration_facts(store, run_id="r0").to_pylist()
    assert counted_by_credit(store).items() <= facts.items()
    assert (facts["num_groups"], facts["num_incomplete"]) == (1, 8)


def test_what_came_after_the_credit_is_compared(tmp_path: Path):
    torn, whole = broken()[0], trajectory("late", "A a B b C", success=True)
    begun, ended = whole[:1], whole[1:]
    assert counted_by_credit(write_store(tmp_path / "s", [*worked_example(), *begun])) == {
        "num_groups": 1,
        "num_trajectories": 3,
        "num_incomplete": 1,
    }
    store = write_store(tmp_path / "s", [*worked_example(), *begun], [*ended, *torn])
    shown = {"num_groups": 1, "num_trajectories": 4, "num_credited": 3, "num_incomplete": 1}
    assert_shown(store, shown)
    assert counted_by_credit(store)["num_trajectories"] == 4


def test_returns_alone_make_a_whole_group_without_a_rate_of_success(tmp_path: Path):
    scored = trajectory("scored", "A a B b C", task_id="t1", rewards=[0, 7])
    rows = [*worked_example(), *(row | {"success": None} for row in scored)]
    store = write_store(tmp_path / "s", rows)
    expected = {"num_groups": 2, "num_trajectories": 4, "num_incomplete": 0}
    for _ in range(2):
        assert_shown(store, expected)
        assert counted_by_credit(store) == expected
    (facts,) = iteration_facts(store, run_id="r0").to_pylist()
    assert facts["success_rate"] == pytest.approx(1 / 3)
