"""The facts of iterations and groups, by hand and by SQL, and the views that give them."""

from pathlib import Path

import pytest

from graphcredit.store import Store
from graphcredit.store.errors import QueryRefusedError, SchemaError
from graphcredit.store.sql.catalog import Connection, connect, run_trusted_query
from graphcredit.viewer.queries import views
from graphcredit.viewer.queries.estimators import column, estimators
from graphcredit.viewer.queries.iterations import iteration_facts
from graphcredit.viewer.queries.tasks import task_facts
from graphcredit.viewer.queries.views import answer, columns
from tests.viewer.stores import Shared, credited, two_tasks
from tests.worlds import trajectory, write_store

ONE = {"run_id": "r0", "iteration": 0}


def test_the_facts_of_an_iteration(shared: Shared):
    store = shared(two_tasks)
    (facts,) = iteration_facts(store, run_id="r0").to_pylist()
    # Returns 10, 0, -0.1 and 0, 0; lengths 4, 2, 2 and 2, 2; one invalid step in 12.
    assert facts["num_groups"] == 2
    assert (facts["num_trajectories"], facts["num_incomplete"]) == (5, 0)
    assert facts["success_rate"] == pytest.approx(1 / 5)
    assert facts["mean_return"] == pytest.approx(9.9 / 5)
    assert facts["mean_length"] == pytest.approx(12 / 5)
    assert facts["invalid_share"] == pytest.approx(1 / 12)
    assert facts["degenerate_share"] == pytest.approx(1 / 2)


def test_an_iteration_in_which_nothing_ended_has_no_rates(tmp_path: Path):
    store = write_store(tmp_path / "s", trajectory("x", "A a B b C", success=None))
    (facts,) = iteration_facts(store, run_id="r0").to_pylist()
    assert (facts["num_trajectories"], facts["num_incomplete"], facts["num_steps"]) == (0, 1, 2)
    assert facts["success_rate"] is None
    assert facts["degenerate_share"] is None


def test_the_groups_are_those_of_the_view(tmp_path: Path):
    open_end = trajectory("u", "A a B", task_id="t1", success=None)
    store = credited(tmp_path / "s", [*two_tasks(), *open_end])
    shown = "task_id, num_trajectories, num_incomplete, success_rate, mean_return, is_degenerate"
    view = run_trusted_query(store, f"SELECT {shown} FROM groups ORDER BY task_id").table
    facts = task_facts(store, **ONE, estimator="graphgpo", others=("graphgpo",))
    names = shown.split(", ")
    assert facts.select(names).sort_by("task_id").to_pylist() == view.to_pylist()


def test_the_ends_of_winners_are_no_merge(tmp_path: Path):
    ends = [trajectory(end, f"A a {end}", rewards=[1.0], success=True) for end in ("B", "C")]
    store = credited(tmp_path / "s", [*ends[0], *ends[1]], names=("reach",))
    (facts,) = task_facts(store, **ONE, estimator="reach").to_pylist()
    assert (facts["num_states"], facts["num_merges"]) == (2, 0)


def test_the_credit_facts_of_the_groups(shared: Shared):
    store = shared(two_tasks, "graphgpo", "grpo")
    facts = task_facts(store, **ONE, estimator="grpo", others=("graphgpo", "grpo"))
    t0, t1 = facts.to_pylist()
    assert (t0["task_id"], t1["task_id"]) == ("t0", "t1")  # the widest spread first
    assert (t0["num_states"], t0["num_merges"]) == (5, 0)
    assert t0["singleton_share"] == pytest.approx(1 / 8)  # only B is left once
    assert t0["returns"] == pytest.approx([10, 0, -0.1])
    # x's four steps have 1.15, those of y and z about -0.58; the bars are 0.25 wide, up to 2.
    assert t0["advantages"] == [*[0] * 5, 4, *[0] * 7, 4, *[0] * 3]
    assert (t1["advantage_spread"], t1["singleton_share"]) == (0, 0)
    assert t1["advantages"] == [*[0] * 8, 4, *[0] * 8]
    steps = run_trusted_query(
        store, "SELECT task_id, grpo_advantage AS a, graphgpo_advantage AS b FROM enriched"
    ).table.to_pylist()
    for group in (t0, t1):
        rows = [row for row in steps if row["task_id"] == group["task_id"]]
        opposed = sum(row["a"] * row["b"] < 0 for row in rows)
        assert group["disagreement"] == pytest.approx(opposed / len(rows))
    assert t0["disagreement"] > 0


def test_one_estimator_has_nobody_to_disagree_with(shared: Shared):
    store = shared(two_tasks)
    facts = task_facts(store, **ONE, estimator="graphgpo", others=("graphgpo",))
    assert facts["disagreement"].to_pylist() == [None, None]


def test_groups_without_credit_have_the_facts_of_their_steps(tmp_path: Path):
    store = write_store(tmp_path / "s", two_tasks())
    facts = task_facts(store, **ONE, estimator=None)
    assert facts["success_rate"].to_pylist() == pytest.approx([1 / 3, 0])
    for name in ("num_states", "num_merges", "advantage_spread", "advantages"):
        assert facts[name].null_count == 2, name


def test_estimators_are_those_with_advantages(tmp_path: Path):
    store = credited(tmp_path / "s", two_tasks(), names=("grpo", "rewardflow"))
    assert estimators(store, **ONE) == ["rewardflow", "grpo"]
    assert estimators(write_store(tmp_path / "new", two_tasks()), **ONE) == []
    assert column('a"b', "advantage") == '"a""b_advantage"'


def test_a_damaged_shard_is_an_error_that_names_it(tmp_path: Path):
    store = write_store(tmp_path / "s", two_tasks(), two_tasks())
    store.shards()[1].path.write_bytes(b"PAR1 no PAR1")
    with pytest.raises(SchemaError, match=r"w1-000000\.parquet"):
        iteration_facts(store, run_id="r0")


def count(store: Store) -> int:
    return answer(store, "SELECT count(*) FROM steps", run_id="r0", iteration=0)[0][0].as_py()


def test_views_stay_open_until_a_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    opened: list[int | None] = []

    def counted(store: Store, *, run_id: str, iteration: int | None) -> Connection:
        opened.append(iteration)
        return connect(store, run_id=run_id, iteration=iteration)

    monkeypatch.setattr(views, "connect", counted)
    store = write_store(tmp_path / "s", two_tasks())
    assert (count(store), count(store)) == (12, 12)
    assert "state_id" in columns(store, "credit", run_id="r0", iteration=0)
    assert len(opened) == 1
    write_store(tmp_path / "s", two_tasks(), trajectory("late", "A a B"))
    assert (count(store), len(opened)) == (13, 2)


def test_a_kept_table_is_computed_once_until_a_file_changes(tmp_path: Path):
    def drawn(store: Store) -> float:
        once = {"drawn": "SELECT random() AS number"}
        return answer(store, "FROM drawn", run_id="r0", iteration=0, tables=once)[0][0].as_py()

    store = write_store(tmp_path / "s", two_tasks())
    first = drawn(store)
    assert drawn(store) == first
    write_store(tmp_path / "s", two_tasks(), trajectory("late", "A a B"))
    assert drawn(store) != first


def test_memory_is_bounded(tmp_path: Path):
    store = write_store(tmp_path / "s", two_tasks())
    limit = "SELECT current_setting('memory_limit')"
    assert answer(store, limit, run_id="r0", iteration=0)[0][0].as_py() == "1.0 GiB"


def test_a_shard_that_is_damaged_inside_is_an_error_of_ours(tmp_path: Path):
    store = write_store(tmp_path / "s", two_tasks())
    path = store.shards()[0].path
    content = bytearray(path.read_bytes())
    content[4:60] = bytes(56)  # the first page of data; the footer is whole
    path.write_bytes(content)
    with pytest.raises(QueryRefusedError, match="DuckDB refused"):
        answer(store, "SELECT DISTINCT task_id FROM steps", run_id="r0", iteration=0)
