"""The stage on stores written by hand: what it writes, keeps, counts and leaves alone."""

import json
import random
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.credit.estimators.table import ESTIMATORS, configure
from graphcredit.credit.iteration.in_memory import compute
from graphcredit.credit.iteration.report import CreditReport
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.credit.steps.batches import plan_batches
from graphcredit.credit.steps.codes import encode
from graphcredit.store import Store
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import InputError, NothingToCreditError, OptionError, SchemaError
from graphcredit.store.files.atomic import atomic_path
from graphcredit.store.layout import Shard
from graphcredit.store.schema import CONFIGURATION_KEY, CREDIT_COLUMNS
from graphcredit.store.sql.catalog import connect
from graphcredit.trainer.data.credit_columns import check_credit
from tests.credit.other_version import as_made_before
from tests.worlds import step_table, trajectory, worked_example, write_store

ALL = tuple(row.name for row in ESTIMATORS if row.name != "sapo")
"""All that need nothing but steps; test_sapo.py brings the entities that SAPO needs."""


def run(store: Store, *names: str, settings: tuple[str, ...] = (), **options: Any) -> CreditReport:
    """Credit a store of one iteration and return its report."""
    wanted = CreditSettings(estimators=configure(names or ALL, settings), **options)
    (report,) = assign_credit(store, wanted).values()
    return report


def read_credit(store: Store) -> list[dict[str, Any]]:
    """Return the credit rows of all shards, in order."""
    tables = [pq.ParquetFile(shard.credit_path).read() for shard in store.shards()]
    return [row for table in tables for row in table.to_pylist()]


def files_of(store: Store) -> dict[str, bytes]:
    """Return every credit and graph file and its bytes."""
    paths = [*store.root.glob("credit/**/*"), *store.root.glob("graph/**/*")]
    return {str(p.relative_to(store.root)): p.read_bytes() for p in paths if p.is_file()}


def test_a_credit_shard_stands_row_for_row_beside_its_step_shard(tmp_path: Path):
    rows = worked_example()
    random.Random(1).shuffle(rows)
    store = write_store(tmp_path / "s", rows[:3], rows[3:])
    run(store)
    for shard, part in zip(store.shards(), (rows[:3], rows[3:]), strict=True):
        assert shard.credit_path.name == shard.path.name
        credit = pq.ParquetFile(shard.credit_path).read().to_pylist()
        keys = [(row["trajectory_id"], row["step_index"]) for row in part]
        assert [(row["trajectory_id"], row["step_index"]) for row in credit] == keys
    written = {(r["trajectory_id"], r["step_index"]): r for r in read_credit(store)}
    assert written["y", 0]["graphgpo_advantage"] == pytest.approx(0.5240, abs=5e-5)
    assert written["z", 0]["rewardflow_advantage"] == pytest.approx(-0.6194, abs=5e-5)


def test_the_common_columns_of_the_worked_example(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    run(store, "grpo")
    rows = read_credit(store)
    names = [column.name for column in CREDIT_COLUMNS]
    assert list(rows[0]) == [*names, "grpo_episode_advantage", "grpo_advantage"]
    # Nodes by first appearance: A 0, B 1, C 2, D 3, goal 4.
    assert [row["state_id"] for row in rows] == [0, 1, 0, 2, 0, 2, 0, 0]
    assert [row["next_state_id"] for row in rows] == [1, 0, 2, 4, 2, 3, 0, 1]
    assert [row["goal_distance"] for row in rows] == [2, 3, 2, 1, 2, 1, 2, 2]
    assert [row["next_goal_distance"] for row in rows] == [3, 2, 1, 0, 1, None, 2, 3]
    assert [row["state_group_size"] for row in rows] == [5, 1, 5, 2, 5, 2, 5, 5]
    assert {row["group_size"] for row in rows} == {3}
    assert {row["group_success_rate"] for row in rows} == {np.float32(1 / 3)}
    assert {row["is_degenerate_group"] for row in rows} == {False}


def test_the_graph_tables_of_the_worked_example(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    run(store, "rewardflow")
    nodes = pq.ParquetFile(store.graph_dir("r0", 0) / "nodes.parquet").read().to_pylist()
    assert [node["state"] for node in nodes] == ["A", "B", "C", "D", "won"]
    assert [node["is_goal"] for node in nodes] == [False] * 4 + [True]
    # x visits A twice, y once, z twice; B by x and at the end of z; C by x and y.
    assert [node["visits"] for node in nodes] == [5, 2, 2, 1, 1]
    assert [node["num_trajectories"] for node in nodes] == [3, 2, 2, 1, 1]
    assert [node["success_rate"] for node in nodes] == pytest.approx([1 / 3, 0.5, 0.5, 0, 1])
    assert [node["goal_distance"] for node in nodes] == [2, 3, 1, None, 0]
    values = [node["rewardflow_value"] for node in nodes]
    assert values == pytest.approx([0.81, 0.729, 0.9, 0, 1])

    edges = pq.ParquetFile(store.graph_dir("r0", 0) / "edges.parquet").read().to_pylist()
    found = {(e["state_id"], e["action"], e["next_state_id"]): e for e in edges}
    assert found.keys() == {
        (0, "a", 1),
        (1, "b", 0),
        (0, "c", 2),
        (2, "d", 4),
        (2, "e", 3),
        (0, "q", 0),
    }
    assert found[0, "a", 1]["visits"] == 2  # by x and by z
    assert [key for key, edge in found.items() if edge["is_pruned"]] == [(0, "q", 0)]
    # Mean of x0's 0.1655 and z1's -1.5665.
    mean = found[0, "a", 1]["rewardflow_advantage"]
    assert mean == pytest.approx((0.1655 - 1.5665) / 2, abs=1e-4)


def test_incomplete_trajectories_get_null_and_are_counted(tmp_path: Path):
    whole = worked_example()
    dead = trajectory("dead", "A a B b C", success=None, task_id="t0")
    alone = trajectory("alone", "A a B", success=None, task_id="t1")
    store = write_store(tmp_path / "s", [*whole, *dead, *alone])
    report = run(store)
    rows = read_credit(store)
    for row in rows[len(whole) :]:
        assert {v for k, v in row.items() if k not in ("trajectory_id", "step_index")} == {None}
    assert rows[0]["gigpo_advantage"] == pytest.approx(2.1547, abs=5e-5)
    assert (report.num_incomplete, report.num_incomplete_steps) == (2, 3)
    assert report.incomplete_reasons == {"the last step has no end": 2}
    assert report.num_groups == 1


OUT_OF_RANGE = "a reward or cost is out of its range"


@pytest.mark.parametrize(
    ("change", "step", "reason"),
    [
        ({"reward": float("nan")}, 0, OUT_OF_RANGE),
        ({"reward": 1e39}, 0, OUT_OF_RANGE),
        ({"cost": 0.0}, 0, OUT_OF_RANGE),
        ({"cost": 1e308}, 0, OUT_OF_RANGE),
        ({"step_index": 1}, 1, "a step_index is there twice"),
        ({"step_index": 9}, 1, "step_index is not 0 … T-1"),
        ({"next_state": "A "}, 0, "a next_state is not the following state"),
        ({"success": True}, 0, "a step before the last one has an end or a success"),
        ({"truncated": True}, 0, "a step before the last one has an end or a success"),
    ],
)
def test_a_broken_trajectory_is_left_out_with_its_reason(
    tmp_path: Path, change: dict[str, Any], step: int, reason: str
):
    rows = worked_example()
    rows[0] |= change
    store = write_store(tmp_path / "s", rows)
    report = run(store, "grpo")
    assert report.incomplete_reasons == {reason: 1}
    assert report.incomplete_example is not None
    assert report.incomplete_example.startswith(f"'x' of task 't0', step {step}: {reason}")
    assert [row["grpo_advantage"] is None for row in read_credit(store)] == [True] * 4 + [False] * 4


def test_without_a_complete_trajectory_nothing_is_written_and_the_reasons_are_told(tmp_path: Path):
    rows = worked_example()
    store = write_store(tmp_path / "s", rows)
    run(store, "grpo")
    before = files_of(store)
    write_store(tmp_path / "s", rows, rows)  # the same log by two workers
    with pytest.raises(
        NothingToCreditError, match=r"found 3 incomplete rollouts \(16 steps\)"
    ) as refused:
        run(store, "grpo")
    assert "\n3: a step_index is there twice\nfor example 'x' of" in str(refused.value)
    assert files_of(store) == before


@pytest.mark.parametrize("iteration", [0, 2])
def test_an_iteration_without_a_complete_trajectory_is_credited_among_others(
    tmp_path: Path, iteration: int
):
    write_store(tmp_path / "s", worked_example(), iteration=1)
    store = write_store(tmp_path / "s", trajectory("u", "A a B", success=None), iteration=iteration)
    reports = assign_credit(store, CreditSettings(estimators=configure(["grpo"])))
    assert sorted(report.num_trajectories for report in reports.values()) == [0, 3]
    assert [row["trajectory_id"] for row in read_credit(store)].count("u") == 1
    assert not list(store.root.rglob("*.tmp"))


@pytest.mark.parametrize(
    ("setting", "column"),
    [("graphgpo.success_reward=1e42", "graphgpo"), ("graphgpo.step_weight=1e300", "graphgpo")],
)
def test_credit_that_overflows_is_refused_by_estimator(tmp_path: Path, setting: str, column: str):
    store = write_store(tmp_path / "s", worked_example())
    with pytest.raises(InputError, match=rf"the credit of {column} must be finite 32-bit"):
        run(store, column, settings=(setting,))
    assert not store.shards()[0].credit_path.exists()
    steps = step_table(worked_example())
    with pytest.raises(InputError, match=rf"the credit of {column} must be finite 32-bit"):
        compute(steps, estimators=configure([column], [setting]))


def test_rewards_and_costs_at_the_ends_of_their_ranges_make_finite_credit(tmp_path: Path):
    rows = [
        row | {"reward": 1e24 * (-1) ** number, "cost": (1e24, 1e-24)[number % 2]}
        for number, row in enumerate(worked_example())
    ]
    store = write_store(tmp_path / "s", rows)
    report = run(store, invalid_action_penalty=1e24)
    assert report.num_incomplete == 0
    numbers = [v for row in read_credit(store) for v in row.values() if isinstance(v, float)]
    assert np.isfinite(numbers).all()
    assert check_store(store).errors == ()


def test_what_is_counted_in_the_worked_example(tmp_path: Path):
    single = trajectory("s", "A a won", rewards=[1], success=True, task_id="t1")
    failed = [s for n in "uv" for s in trajectory(n, "A a B", task_id="t2")]
    report = run(write_store(tmp_path / "s", [*worked_example(), *single, *failed]))
    assert (report.num_steps, report.num_trajectories, report.num_successes) == (11, 6, 2)
    assert report.num_groups == 3
    assert report.num_singleton_groups == 1
    assert report.num_degenerate_groups == 2
    assert (report.num_groups_without_success, report.num_groups_without_goal) == (1, 1)
    assert report.num_states == 5 + 2 + 2
    assert report.num_edges == 6 + 1 + 1
    assert (report.num_unreachable_states, report.num_states_with_goal) == (1, 7)
    assert report.num_invalid_steps == 1
    assert report.num_single_visit_steps == 2  # x1 at B, and the single trajectory


def test_a_group_that_begins_in_several_states_that_recur_is_named(tmp_path: Path):
    steps = [s for n, at in zip("abcd", "AABC", strict=True) for s in trajectory(n, f"{at} a won")]
    report = run(write_store(tmp_path / "s", steps), "grpo")
    assert report.num_groups_of_several_starts == 0  # B and C occur once each
    steps += [s for n in "ef" for s in trajectory(n, "D a won")]
    report = run(write_store(tmp_path / "t", steps), "grpo")
    assert report.num_groups_of_several_starts == 1
    assert any("from several first states" in notice for notice in report.notices)


def test_shards_rows_and_batches_change_no_number(tmp_path: Path):
    rows = [step for t in range(7) for step in worked_example(f"task-{t}")]
    rows = step_table(rows).to_pylist()  # so that each step has its own time, wherever it is put
    expected = write_store(tmp_path / "one", rows)
    run(expected)
    by_key = {(r["trajectory_id"], r["state_id"]): r for r in read_credit(expected)}
    assert by_key
    shuffled = list(rows)
    random.Random(5).shuffle(shuffled)
    parts = [shuffled[:5], [], shuffled[5:31], shuffled[31:]]
    many = write_store(tmp_path / "many", *parts)
    run(many, batch_rows=9)

    def keyed(store: Store, order: list[dict[str, Any]]) -> dict[Any, Any]:
        keys = [(r["task_id"], r["trajectory_id"], r["step_index"]) for r in order]
        return dict(zip(keys, read_credit(store), strict=True))

    assert keyed(many, shuffled) == keyed(expected, rows)

    def tables(store: Store, name: str) -> list[Any]:
        table = pq.ParquetFile(store.graph_dir("r0", 0) / f"{name}.parquet").read()
        return sorted(map(str, table.to_pylist()))

    assert tables(many, "nodes") == tables(expected, "nodes")
    assert tables(many, "edges") == tables(expected, "edges")


def test_step_parts_of_another_graph_are_not_kept(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    run(store, "graphgpo", "grpo", merge=MergeSettings(normalise=("casefold",)))
    report = run(store, "gigpo")
    assert [notice for notice in report.notices if "not kept" in notice] == [
        "the graphgpo columns were not kept: their states are of another graph (guard was True, "
        "is None, rules was ['casefold'], is None), and an "
        "iteration has one. Run credit again with --estimator graphgpo"
    ]
    names = set(read_credit(store)[0])
    assert {"grpo_advantage", "gigpo_advantage"} <= names
    assert not any(name.startswith("graphgpo") for name in names)
    run(store, "graphgpo")
    assert "gigpo_advantage" in read_credit(store)[0]


def test_groups_that_are_spread_over_all_shards_are_bounded_batches_too(tmp_path: Path):
    """Each worker plays one rollout of every task: all first rows are in the first shard."""
    groups = [worked_example(f"task-{number}") for number in range(6)]
    by_name = [groupby(group, lambda row: row["trajectory_id"]) for group in groups]
    played = [[list(rows) for _, rows in of_group] for of_group in by_name]
    shards = [
        [row for rows in of_worker for row in rows] for of_worker in zip(*played, strict=True)
    ]
    store = write_store(tmp_path / "s", *shards)
    run(store)
    expected = read_credit(store)
    size = len(groups[0])
    plan = plan_batches(store.shards(), 2 * size)
    assert plan.batch_of_row is not None
    assert np.bincount(np.concatenate(plan.batch_of_row)).tolist() == [2 * size] * 3
    assert plan.shards_of_batch == [list(range(len(shards)))] * 3
    run(store, batch_rows=2 * size)
    assert read_credit(store) == expected


def test_long_states_fill_a_batch_before_its_rows_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    shards = [worked_example(f"task-{number}") for number in range(4)]
    store = write_store(tmp_path / "s", *shards)
    run(store)
    expected = read_credit(store)
    assert len(plan_batches(store.shards()).shards_of_batch) == 1
    # Of one shard; the file has each text once, and says how much room it takes.
    metadata = pq.ParquetFile(store.shards()[0].path).metadata.row_group(0)
    columns = [metadata.column(number) for number in range(metadata.num_columns)]
    room = sum(c.total_uncompressed_size for c in columns if "state" in c.path_in_schema)
    monkeypatch.setattr("graphcredit.credit.steps.batches.BATCH_BYTES", 2 * room)
    batches = plan_batches(store.shards()).shards_of_batch
    assert batches == [[0, 1], [2, 3]]
    run(store)
    assert read_credit(store) == expected


def test_more_text_than_can_be_numbered_is_refused_in_words(monkeypatch: pytest.MonkeyPatch):
    def overflow(*_: object) -> None:
        raise pa.ArrowCapacityError("array cannot contain more than 2147483646 bytes")

    column = pa.chunked_array([["A"]])
    monkeypatch.setattr(pa, "chunked_array", overflow)
    with pytest.raises(InputError, match="must have less than 2 GiB"):
        encode(column)


def test_other_estimators_keep_their_columns_and_their_configuration(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    run(store, "grpo", "rewardflow", settings=("rewardflow.gamma=0.5",))
    before = read_credit(store)
    run(store, "gigpo")
    run(store, "grpo", settings=("grpo.normalize=none",))
    after = read_credit(store)
    names = {name for name in before[0] if name.startswith("rewardflow")}
    assert names
    for old, new in zip(before, after, strict=True):
        assert {n: old[n] for n in names} == {n: new[n] for n in names}
    assert after[0]["gigpo_advantage"] == pytest.approx(2.1547, abs=5e-5)
    assert after[0]["grpo_advantage"] == pytest.approx(6.7, abs=1e-6)  # 10 - (10 + 0 - 0.1) / 3
    metadata = pq.ParquetFile(store.shards()[0].credit_path).schema_arrow.metadata
    made_by = json.loads(metadata[CONFIGURATION_KEY])
    assert made_by["rewardflow"]["options"]["gamma"] == 0.5
    assert made_by["grpo"]["options"]["normalize"] == "none"
    nodes = pq.ParquetFile(store.graph_dir("r0", 0) / "nodes.parquet").read()
    assert nodes["rewardflow_value"].to_pylist() == pytest.approx([0.25, 0.125, 0.5, 0, 1])
    edges = pq.ParquetFile(store.graph_dir("r0", 0) / "edges.parquet").read()
    assert {"rewardflow_advantage", "gigpo_advantage", "grpo_advantage"} <= set(edges.column_names)


@pytest.mark.parametrize(
    ("options", "values"),
    [
        ({"gamma": 0.5, "of_a_later_version": 1}, [0.25, 0.125, 0.5, 0, 1]),
        ({"gamma": "half"}, [None] * 5),
        (None, [None] * 5),
    ],
)
def test_the_potential_is_that_of_kept_columns_as_far_as_they_say_how_they_were_made(
    tmp_path: Path, options: dict[str, Any] | None, values: list[float | None]
):
    store = write_store(tmp_path / "s", worked_example())
    run(store, "rewardflow", settings=("rewardflow.gamma=0.5",))
    (shard,) = store.shards()
    table = pq.ParquetFile(shard.credit_path).read()
    metadata = dict(table.schema.metadata)
    made_by = json.loads(metadata[CONFIGURATION_KEY])
    made_by["rewardflow"].pop("options")
    if options is not None:
        made_by["rewardflow"]["options"] = options
    metadata[CONFIGURATION_KEY] = json.dumps(made_by).encode()
    pq.write_table(table.replace_schema_metadata(metadata), shard.credit_path)
    run(store, "grpo")
    nodes = pq.ParquetFile(store.graph_dir("r0", 0) / "nodes.parquet").read()
    assert nodes["rewardflow_value"].to_pylist() == pytest.approx(values)


def test_no_cure_is_named_that_the_settings_refuse(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    run(store, "spo3", "graphgpo")
    merge = MergeSettings(merge="segments")
    lost = {notice[4:8]: notice for notice in run(store, "gigpo", merge=merge).notices}
    assert "Run credit again" not in lost["spo3"]
    assert "Run credit again with --estimator graphgpo" in lost["grap"]


def test_columns_of_an_older_formula_are_not_kept(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    run(store, "spo3", "grpo")
    as_made_before(store)
    (notice,) = run(store, "rloo").notices
    assert "the spo3 columns were not kept: another version of its formula made them" in notice
    assert "--estimator spo3" in notice
    (row, *_) = read_credit(store)
    assert "grpo_advantage" in row
    assert "spo3_advantage" not in row


def test_an_iteration_is_credited_by_one_process_at_a_time(tmp_path: Path):
    """Each of two would keep the columns that it found when it began, and lose the other's."""
    store = write_store(tmp_path / "s", worked_example())
    wanted = CreditSettings(estimators=configure(["grpo"]))
    refusals: list[str] = []

    def meanwhile(what: str, done: float = 0, total: int = 0, note: str = "") -> None:
        with pytest.raises(InputError) as caught:
            run(store, "rloo")
        refusals.append(str(caught.value))

    assign_credit(store, wanted, on_progress=meanwhile)
    (refusal,) = refusals
    for words in ("run r0, iteration 0", "another is doing so", "then run this command again"):
        assert words in refusal
    run(store, "rloo")
    assert {"grpo_advantage", "rloo_advantage"} <= read_credit(store)[0].keys()
    assert check_store(store).violations == ()


def test_columns_of_an_estimator_that_this_program_does_not_know_are_kept(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    run(store, "grpo")
    path = store.shards()[0].credit_path
    table = pq.ParquetFile(path).read()
    own = pa.array(np.arange(8, dtype=np.float32))
    pq.write_table(table.append_column("my_own_advantage", own), path)
    run(store, "rloo")
    assert [row["my_own_advantage"] for row in read_credit(store)] == list(range(8))
    with connect(store) as connection:
        assert connection.sql("SELECT sum(my_own_advantage) FROM enriched").fetchall() == [(28.0,)]


def test_a_credit_shard_of_other_rows_is_not_kept_and_named(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    run(store, "grpo")
    path = store.shards()[0].credit_path
    pq.write_table(pq.ParquetFile(path).read().slice(0, 5), path)
    report = run(store, "rloo")
    assert [str(path) in notice for notice in report.notices[:1]] == [True]
    assert "grpo_advantage" not in read_credit(store)[0]
    assert len(read_credit(store)) == 8


def _halves() -> list[list[dict[str, Any]]]:
    """Return the steps of two shards."""
    return [worked_example("one"), worked_example("two")]


def _put_back(shard: Shard, before: bytes | None) -> None:
    """Leave a credit shard as a kill before its turn among the renames does."""
    if before is None:
        shard.credit_path.unlink()
    else:
        shard.credit_path.write_bytes(before)


@pytest.mark.parametrize("turn", [0, 1])
@pytest.mark.parametrize("first", [None, "rloo", "grpo"])
def test_columns_that_a_killed_run_left_in_some_shards_are_not_kept_as_if_it_had_ended(
    tmp_path: Path, first: str | None, turn: int
):
    """What was there before: no credit at all, another estimator's, or its own by another option.

    Kept, they would be null elsewhere or of two kinds, and a training on them would not be refused.
    """
    store = write_store(tmp_path / "s", *_halves())
    shard = store.shards()[turn]
    if first is not None:
        run(store, first)
    before = shard.credit_path.read_bytes() if first else None
    run(store, "grpo", settings=("grpo.normalize=none",))
    _put_back(shard, before)
    report = run(store, "gigpo")
    (notice,) = report.notices
    assert notice.startswith("the grpo columns were not kept: a run that was killed")
    assert notice.endswith("with --estimator grpo")
    names = {"gigpo_advantage"} | ({"rloo_advantage"} if first == "rloo" else set())
    for row in read_credit(store):
        found = {name: row[name] for name in row if name.endswith("_advantage")}
        assert {name for name in found if "_step_" not in name and "_episode_" not in name} == names
        assert None not in found.values()
    with pytest.raises(InputError, match="must have the column grpo_advantage"):
        check_credit(store, store.shards(), "grpo_advantage")
    run(store, "grpo")
    check_credit(store, store.shards(), "grpo_advantage")


def test_columns_of_which_a_damaged_shard_lost_a_part_are_not_kept(tmp_path: Path):
    store = write_store(tmp_path / "s", *_halves())
    run(store, "grpo")
    path = store.shards()[0].credit_path
    path.write_bytes(path.read_bytes()[:50])
    damage, loss = run(store, "rloo").notices
    assert str(path) in damage
    assert "grpo columns were not kept" in loss
    assert "grpo_advantage" not in read_credit(store)[-1]


def test_columns_that_are_older_than_a_shard_are_kept_again_and_again_and_not_trained_on(
    tmp_path: Path,
):
    one, two = _halves()
    store = write_store(tmp_path / "s", one)
    run(store, "grpo")
    write_store(tmp_path / "s", one, two)
    for other in ("rloo", "gigpo"):
        report = run(store, other)
        assert ["grpo columns that were kept" in notice for notice in report.notices] == [True]
        values = [row["grpo_advantage"] for row in read_credit(store)]
        assert None not in values[: len(one)]
        assert {*values[len(one) :]} == {None}
        with pytest.raises(InputError, match="other step shards"):
            check_credit(store, store.shards(), "grpo_advantage")


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_run_that_dies_leaves_the_previous_credit_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
):
    rows = [step for t in range(4) for step in worked_example(f"task-{t}")]
    store = write_store(tmp_path / "s", rows[:16], rows[16:])
    run(store, "grpo")
    before = files_of(store)

    import graphcredit.credit.iteration.credit_steps as road

    calls = 0

    def dying(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == fails_at:
            raise KeyboardInterrupt
        return assemble_report(*arguments)

    assemble_report = road.report_of
    monkeypatch.setattr(road, "report_of", dying)
    with pytest.raises(KeyboardInterrupt):
        run(store, "gigpo", batch_rows=8)
    assert files_of(store) == before


def test_the_penalty_is_taken_off_before_anything_else(tmp_path: Path):
    rows = worked_example()
    store = write_store(tmp_path / "s", rows)
    run(store, "rloo", invalid_action_penalty=0.5)
    # z's return is -0.1 - 0.5 = -0.6: x gets 10 - (0 - 0.6) / 2.
    assert read_credit(store)[0]["rloo_advantage"] == pytest.approx(10.3)


def test_there_must_be_something_to_credit(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    settings = CreditSettings(estimators=configure(["grpo"]))
    with pytest.raises(InputError, match=r"for run 'nope'.*\(runs: r0\)"):
        assign_credit(store, settings, run_id="nope")


def test_an_iteration_that_is_not_there_is_named_with_those_that_are(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example(), iteration=4)
    settings = CreditSettings(estimators=configure(["grpo"]))
    with pytest.raises(InputError, match=r"and iteration 9: found none \(iterations: 4\)"):
        assign_credit(store, settings, run_id="r0", iteration=9)


@pytest.mark.parametrize(("table", "name"), [("credit", "w0"), ("graph", "nodes")])
def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path: Path, table: str, name: str):
    store = write_store(tmp_path / "s", worked_example())
    folder = store.root / table / "run_id=r0" / "iteration=000000"
    folder.mkdir(parents=True)
    name = store.shards()[0].path.stem if name == "w0" else name
    dead, older = (folder / f"{name}.parquet.{digits}.tmp" for digits in ("0a1b2c3d", "12345"))
    foreign = folder / "a.parquet.0a1b2c3d.tmp"
    for path in (dead, older, foreign):
        path.write_bytes(b"half")
    with atomic_path(folder / "notes.txt") as alive:
        run(store, "grpo")
        assert not dead.exists()
        assert not older.exists()
        assert foreign.exists()
        alive.write_text("whole")
    assert (folder / "notes.txt").exists()


def test_a_null_key_names_the_column(tmp_path: Path):
    rows = worked_example()
    rows[0]["step_index"] = 0
    store = write_store(tmp_path / "s", rows)
    path = store.shards()[0].path
    table = pq.ParquetFile(path).read()
    column = pa.array([None, *table["step_index"].to_pylist()[1:]], pa.int32())
    schema = table.schema.set(2, pa.field("step_index", pa.int32()))
    columns = [column if n == "step_index" else table[n] for n in table.column_names]
    pq.write_table(pa.table(columns, schema=schema), path)
    with pytest.raises(SchemaError, match="step_index must not be null: it is in 1 step of this"):
        run(store)


@pytest.mark.parametrize(
    ("names", "settings", "message"),
    [
        (["grp"], [], "no estimator is called 'grp'; there are grpo, rloo"),
        (["grpo"], ["gigpo.gamma=0.5"], "not among grpo"),
        (["gigpo"], ["gamma"], "ESTIMATOR.OPTION=VALUE: got 'gamma'"),
        (["rloo"], ["rloo.normalize=none"], "its options: none"),
    ],
)
def test_a_wrong_option_is_refused_with_what_would_be_right(
    names: list[str], settings: list[str], message: str
):
    with pytest.raises(OptionError, match=message.replace("(", r"\(")):
        configure(names, settings)


@pytest.mark.parametrize("batch_rows", [1 << 17, 1])
def test_a_trajectory_of_two_tasks_is_refused_before_anything_is_written(
    tmp_path: Path, batch_rows: int
):
    shared = [row | {"task_id": "t1"} for row in worked_example()]
    store = write_store(tmp_path / "s", worked_example(), shared)
    with pytest.raises(
        SchemaError,
        match=r"'x' is of task 't0' and of task 't1', and 2 more like it.*graphcredit check STORE",
    ):
        assign_credit(store, CreditSettings(estimators=configure(["grpo"]), batch_rows=batch_rows))
    assert not any(store.root.glob("credit/*/*/*.parquet"))
