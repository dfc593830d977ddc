"""Every rule is seen to be broken by a store that breaks it, and only by that one."""

import re
import shlex
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.store import Store, create_store
from graphcredit.store.checks.file_rules import FILE_RULES, Severity
from graphcredit.store.checks.rows import ROW_RELATIONS
from graphcredit.store.checks.run import check_store
from graphcredit.store.checks.violations import Violation
from graphcredit.store.schema import CONFIGURATION_KEY
from tests.store.whole_store import (
    CREDIT,
    EARLIER,
    EDGES,
    ENTITIES,
    NODES,
    RELATIONS,
    SCORES,
    STEPS,
    VECTORS,
    add_file,
    change_table,
    damage_column,
    edit,
    move_file,
    set_value,
    whole_store,
)
from tests.worlds import START, step_table, trajectory, write_store

Fault = Callable[[Path], None]
Planted = tuple[str, str, Fault]


def _drop(column: str) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.drop_columns([column])


def _replace(column: str, values: list[object]) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        index = table.schema.get_field_index(column)
        return table.set_column(index, column, pa.array((values * 99)[: table.num_rows]))

    return change


def _configuration(text: bytes) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.replace_schema_metadata({CONFIGURATION_KEY: text})


def _append(column: str, value: object) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.append_column(column, pa.array([value] * table.num_rows))


def _with_invalid_utf8(table: pa.Table) -> pa.Table:
    texts = pa.array([b"\xff"] * table.num_rows).view(pa.string())
    return table.set_column(table.schema.get_field_index("thought"), "thought", texts)


def _shift_state_ids(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        row["state_id"] += 1


def _log_nan_probability(rows: list[dict[str, Any]]) -> None:
    rows[1] |= {"response_ids": [7, 8], "response_logprobs": [-0.5, float("nan")]}


def _end_without_credit(root: Path) -> None:
    (root / CREDIT).unlink()
    set_value(STEPS, 9, "success", True)(root)


# Rows of the step shard: x is 0-3, y is 4-5, z is 6-7, and the dead worker's trajectory is 8-9.
ERRORS: list[Planted] = [
    ("not_null", STEPS, set_value(STEPS, 1, "action", None)),
    ("not_null", STEPS, set_value(STEPS, 9, "trajectory_id", None)),
    ("finite_reward", STEPS, set_value(STEPS, 1, "reward", float("nan"))),
    ("finite_reward", STEPS, set_value(STEPS, 1, "reward", float("inf"))),
    ("finite_reward", STEPS, set_value(STEPS, 1, "reward", -1e39)),
    ("positive_cost", STEPS, set_value(STEPS, 1, "cost", 0.0)),
    ("positive_cost", STEPS, set_value(STEPS, 1, "cost", 1e308)),
    ("positive_cost", STEPS, set_value(STEPS, 1, "cost", float("nan"))),
    ("finite_score", STEPS, set_value(STEPS, 1, "score", float("nan"))),
    ("not_negative", STEPS, set_value(STEPS, 1, "oracle_distance", -1.0)),
    ("not_negative", STEPS, set_value(STEPS, 1, "next_oracle_distance", float("nan"))),
    ("not_negative", STEPS, set_value(STEPS, 1, "oracle_distance", float("inf"))),
    ("not_empty", STEPS, edit(STEPS, lambda rows: [r.update(trajectory_id="") for r in rows[8:]])),
    ("finite_number", STEPS, set_value(STEPS, 1, "temperature", float("nan"))),
    ("token_lengths", STEPS, set_value(STEPS, 1, "response_logprobs", [-0.5])),
    ("no_null_elements", STEPS, set_value(STEPS, 1, "admissible_actions", ["a", None])),
    ("no_null_elements", STEPS, set_value(STEPS, 1, "prompt_ids", [None])),
    ("image_content", STEPS, set_value(STEPS, 1, "images", [{"bytes": None, "path": None}])),
    ("image_path", STEPS, set_value(STEPS, 1, "images", [{"bytes": None, "path": "/etc/passwd"}])),
    ("extra_object", STEPS, set_value(STEPS, 1, "extra", "[1]")),
    ("extra_object", STEPS, set_value(STEPS, 1, "extra", "{")),
    ("extra_object", STEPS, set_value(STEPS, 1, "extra", '{"a": NaN}')),
    ("extra_object", STEPS, set_value(STEPS, 1, "extra", r'{"a": "\ud800"}')),
    ("step_index", STEPS, edit(STEPS, lambda rows: rows[4].update(step_index=-1))),
    ("unique_step", STEPS, edit(STEPS, lambda rows: rows.append(rows[8] | {"action": "other"}))),
    ("unique_step", STEPS, edit(STEPS, lambda rows: rows.append(dict(rows[8])))),
    ("contiguous_steps", STEPS, set_value(STEPS, 9, "step_index", 2)),
    ("contiguous_steps", STEPS, edit(STEPS, lambda rows: rows.pop(0))),
    ("one_task", STEPS, set_value(STEPS, 9, "task_id", "t1")),
    ("unbroken_chain", STEPS, set_value(STEPS, 1, "state", "elsewhere")),
    ("end_on_last_step", STEPS, set_value(STEPS, 1, "truncated", True)),
    ("success_on_last_step", STEPS, set_value(STEPS, 1, "success", False)),
    ("ordered_times", STEPS, set_value(STEPS, 1, "logged_at", EARLIER)),
    ("columns", STEPS, change_table(STEPS, _drop("reward"))),
    ("columns", STEPS, change_table(STEPS, _replace("reward", ["much"]))),
    ("columns", STEPS, change_table(STEPS, _replace("step_index", [1 << 40]))),
    ("columns", STEPS, change_table(STEPS, _replace("prompt_ids", [1.5]))),
    ("columns", STEPS, change_table(STEPS, _replace("temperature", [1e39]))),
    ("columns", STEPS, change_table(STEPS, _replace("response_logprobs", [[1e39]]))),
    ("readable", STEPS, add_file(STEPS)),
    ("readable", STEPS, add_file(STEPS, b"")),
    ("readable", VECTORS, add_file(VECTORS)),
    *[
        ("readable", STEPS, damage_column(STEPS, column))
        for column in ("state", "reward", "thought", "prompt_ids")
    ],
    ("readable", STEPS, change_table(STEPS, _with_invalid_utf8)),
    *[
        ("path_name", path, add_file(path))
        for path in (
            "steps/run_id=a b/iteration=0/x.parquet",
            "steps/run_id=r0/iteration=one/x.parquet",
            "steps/x.parquet",
            "graph/run_id=r0/nodes.parquet",
        )
    ],
    ("credit_pair", CREDIT.replace("w0", "w7"), move_file(CREDIT, CREDIT.replace("w0", "w7"))),
    ("credit_rows", CREDIT, edit(CREDIT, lambda rows: rows.pop())),
    ("credit_rows", CREDIT, edit(CREDIT, lambda rows: rows.reverse())),
    ("credit_configuration", CREDIT, change_table(CREDIT, _configuration(b"[]"))),
    ("credit_configuration", CREDIT, change_table(CREDIT, _configuration(b"grpo"))),
    ("columns", CREDIT, change_table(CREDIT, _append("grpo_advantage", "x"))),
    ("no_credit_for_incomplete", CREDIT, set_value(CREDIT, 9, "state_id", 0)),
    ("finite_credit", CREDIT, set_value(CREDIT, 1, "goal_distance", float("inf"))),
    ("readable", CREDIT, add_file(CREDIT)),
    ("columns", NODES, change_table(NODES, _drop("visits"))),
    ("not_null", NODES, set_value(NODES, 0, "visits", None)),
    ("unique_row", NODES, edit(NODES, lambda rows: rows.append(dict(rows[0])))),
    ("node_ids", NODES, edit(NODES, _shift_state_ids)),
    ("one_goal", NODES, set_value(NODES, 0, "is_goal", True)),
    ("reference", EDGES, set_value(EDGES, 0, "state_id", 7)),
    ("reference", EDGES, set_value(EDGES, 0, "next_state_id", 7)),
    ("edge_cost", EDGES, set_value(EDGES, 0, "cost", -1.0)),
    ("not_null", EDGES, set_value(EDGES, 0, "action", None)),
    ("graph_pair", EDGES, move_file(NODES, "quarantine/nodes.parquet")),
    ("success_count", SCORES, set_value(SCORES, 0, "num_success", 4)),
    ("unique_row", SCORES, edit(SCORES, lambda rows: rows.append(dict(rows[0])))),
    ("not_null", SCORES, set_value(SCORES, 0, "score", None)),
    ("not_null", SCORES, set_value(SCORES, 0, "state", None)),
    ("unique_row", ENTITIES, edit(ENTITIES, lambda rows: rows.append(dict(rows[0])))),
    ("no_null_elements", ENTITIES, set_value(ENTITIES, 0, "aliases", [None])),
    ("not_null", ENTITIES, set_value(ENTITIES, 0, "name", None)),
    ("reference", RELATIONS, set_value(RELATIONS, 0, "head_id", "e9")),
    ("reference", RELATIONS, set_value(RELATIONS, 0, "tail_id", "e9")),
    ("not_null", RELATIONS, set_value(RELATIONS, 0, "relation", None)),
    ("relation_pair", RELATIONS, move_file(ENTITIES, "quarantine/entities.parquet")),
]
"""Rule, file that breaks it, fault."""

NOTICES: list[Planted] = [
    ("unknown_column", STEPS, change_table(STEPS, _append("mood", "glad"))),
    ("unknown_column", CREDIT, change_table(CREDIT, _append("magic", "much"))),
    ("left_over_spool", "spool/w3.jsonl", add_file("spool/w3.jsonl")),
    ("left_over_temporary", f"{STEPS}.0a1b2c3d.tmp", add_file(f"{STEPS}.0a1b2c3d.tmp")),
    ("unknown_file", "notes.txt", add_file("notes.txt")),
    ("ended_with_outcome", STEPS, _end_without_credit),
    ("finite_logprobs", STEPS, edit(STEPS, _log_nan_probability)),
    ("same_start", STEPS, set_value(STEPS, 4, "state", "B")),
]


CONSEQUENCES = {
    STEPS: {
        ("contiguous_steps", STEPS),
        ("credit_rows", CREDIT),
        ("no_credit_for_incomplete", CREDIT),
    },
    NODES: {("reference", EDGES)},
}
"""File to the errors that a fault in it may bring along."""


_LAST = {file: fault for _, file, fault in ERRORS}
"""Each file with the last fault that it has above."""


def _ids(table: list[Planted]) -> list[str]:
    return [f"{rule}-{number}" for number, (rule, _, _) in enumerate(table)]


def test_a_store_that_keeps_every_rule_has_nothing_to_report(tmp_path: Path):
    report = check_store(whole_store(tmp_path / "store"))
    assert [violation.message for violation in report.violations] == []
    assert (report.num_step_shards, report.num_steps) == (1, 10)
    assert (report.num_trajectories, report.num_incomplete) == (4, 1)


def test_an_empty_store_has_nothing_to_report(tmp_path: Path):
    report = check_store(create_store(tmp_path / "store"))
    assert (report.violations, report.num_steps, report.num_trajectories) == ((), 0, 0)


def _of_shards(table: list[Planted]) -> list[Planted]:
    """Return the faults of step shards and their credit that leave both where they are."""
    others = ("readable", "path_name", "credit_pair")
    return [each for each in table if each[1] in (STEPS, CREDIT) and each[0] not in others]


def _joined(root: Path, table: list[Planted]) -> Store:
    """Return an iteration whose shard `wN` and its credit have the N-th fault of a table."""
    whole, joined = whole_store(root / "whole").root, create_store(root / "joined")
    for number, (_, _, fault) in enumerate(table):
        broken = shutil.copytree(whole, root / f"{number}")
        fault(broken)
        for file in (STEPS, CREDIT):
            if (broken / file).exists():  # trajectories are other ones than those of other shards
                path = joined.root / file.replace("w0", f"w{number}")
                path.parent.mkdir(parents=True, exist_ok=True)
                rows = pq.read_table(broken / file, partitioning=None)
                pq.write_table(_renamed(rows, number), path)
    return joined


def _renamed(table: pa.Table, number: int) -> pa.Table:
    index = table.schema.get_field_index("trajectory_id")
    names = [name and f"{number} {name}" for name in table["trajectory_id"].to_pylist()]
    return table.set_column(index, table.schema.field(index), pa.array(names, pa.string()))


def _by_shard(violations: Iterable[Violation]) -> dict[int, set[tuple[str, str]]]:
    """Return rule and file, as if of shard `w0`, of what was found in each shard."""
    found: dict[int, set[tuple[str, str]]] = {}
    for each in violations:
        (number,) = re.findall(r"/w(\d+)-", each.file)
        file = each.file.replace(f"/w{number}-", "/w0-")
        found.setdefault(int(number), set()).add((each.rule.name, file))
    return found


def _assert_only(rule: str, file: str, found: set[tuple[str, str]]) -> None:
    assert (rule, file) in found
    assert found - {(rule, file)} <= CONSEQUENCES.get(file, set())


def _assert_ways_out(errors: Iterable[Violation]) -> None:
    for error in errors:
        assert error.takes_out == shlex.join(["mv", error.file, f"{error.file}.out"])


def test_each_broken_rule_is_the_only_error_of_its_shard(tmp_path: Path):
    table = _of_shards(ERRORS)
    errors = check_store(_joined(tmp_path, table)).errors
    found = _by_shard(errors)
    for number, (rule, file, _) in enumerate(table):
        _assert_only(rule, file, found.get(number, set()))
    _assert_ways_out(errors)


_ALONE = [each for each in ERRORS if each not in _of_shards(ERRORS)]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("rule", "file", "fault"), _ALONE, ids=_ids(_ALONE))
def test_a_broken_rule_is_the_only_error(tmp_path: Path, rule: str, file: str, fault: Fault):
    store = whole_store(tmp_path / "store")
    fault(store.root)
    errors = check_store(store).errors
    _assert_only(rule, file, {(error.rule.name, error.file) for error in errors})
    _assert_ways_out(errors)


@pytest.mark.parametrize(("file", "fault"), _LAST.items(), ids=_LAST)
def test_what_is_sound_is_checked_when_a_broken_file_was_taken_out(
    tmp_path: Path, file: str, fault: Fault
):
    store = whole_store(tmp_path / "store")
    fault(store.root)
    broken = (store.root / file).read_bytes()
    while errors := check_store(store).errors:
        for command in {error.takes_out for error in errors}:
            assert command is not None
            _, name, out = shlex.split(command)
            (store.root / name).rename(store.root / out)
    assert (store.root / f"{file}.out").read_bytes() == broken


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("rule", "file", "fault"), NOTICES, ids=_ids(NOTICES))
def test_an_oddity_is_a_notice_and_stays(tmp_path: Path, rule: str, file: str, fault: Fault):
    store = whole_store(tmp_path / "store")
    fault(store.root)
    before = (store.root / file).read_bytes()
    report = check_store(store)
    assert (rule, file) in {(notice.rule.name, notice.file) for notice in report.notices}
    assert report.errors == ()
    assert (store.root / file).read_bytes() == before


def test_every_rule_has_a_store_that_breaks_it():
    declared = {
        (rule.name, rule.severity)
        for rules in (FILE_RULES.values(), *(relation.rules for relation in ROW_RELATIONS))
        for rule in rules
    }
    tested = {(rule, Severity.ERROR) for rule, _, _ in ERRORS}
    tested |= {(rule, Severity.NOTICE) for rule, _, _ in NOTICES}
    # tests/store/test_provenance.py and test_links.py break these.
    elsewhere = ("stale_credit", "old_history", "link")
    tested |= {(rule, Severity.NOTICE) for rule in elsewhere}
    # tests/store/test_provenance.py, test_newer.py, test_links.py, test_state_rules.py and
    # test_images.py break these.
    elsewhere = ("state_rules", "mixed_credit", "schema_version", "accessible", "one_name")
    elsewhere = (*elsewhere, "image_file")
    tested |= {(rule, Severity.ERROR) for rule in elsewhere}
    assert tested == declared


def test_a_violation_shows_its_first_rows_and_counts_the_rest(tmp_path: Path):
    rows = [row | {"cost": -2.0} for row in trajectory("x", ["A", "a"] * 7 + ["A"])]
    (error,) = check_store(write_store(tmp_path / "store", rows)).errors
    assert (error.rows, error.num_rows) == ((0, 1, 2, 3, 4), 7)
    assert error.message == (
        "steps/run_id=r0/iteration=000000/w0-000000.parquet, rows 0, 1, 2, 3, 4 and 2 more: "
        "cost must be a number from 1e-24 to 1e+24: found -2.0; correct the program that wrote it"
    )


def test_a_step_that_two_shards_have_is_told_of_each_with_the_other_and_what_to_do(tmp_path: Path):
    shards = [trajectory("x", path, logged_at=START) for path in ("A a B", "A b B")]
    report = check_store(write_store(tmp_path / "store", *shards))
    files = [f"steps/run_id=r0/iteration=000000/w{n}-000000.parquet" for n in (0, 1)]
    told = {error.file: error for error in report.errors if error.rule.name == "unique_step"}
    assert list(told) == files
    assert told[files[0]].found == f"{files[1]} has it too: step 0 of x"
    assert told[files[1]].found == f"{files[0]} has it too: step 0 of x"
    assert "log each rollout once" in told[files[0]].message


def test_rules_between_steps_hold_across_shards_in_any_order(tmp_path: Path):
    x = trajectory("x", "A a B b C c D", success=True)
    for number, row in enumerate(x):
        row["logged_at"] = START.replace(second=number)
    sound = write_store(tmp_path / "sound", [x[2]], [x[0], x[1]])
    assert check_store(sound).errors == ()
    x[2]["state"] = "elsewhere"
    broken = write_store(tmp_path / "broken", [x[2]], [x[0], x[1]])
    (error,) = check_store(broken).errors
    assert (error.rule.name, Path(error.file).name) == ("unbroken_chain", "w0-000000.parquet")


def test_a_trajectory_id_may_return_in_another_run_or_iteration(tmp_path: Path):
    root = tmp_path / "store"
    for run_id, iteration in (("r0", 0), ("r0", 1), ("r1", 0)):
        store = write_store(root, trajectory("x", "A a B"), run_id=run_id, iteration=iteration)
    report = check_store(store)
    assert (report.errors, report.num_trajectories) == ((), 3)


def test_types_and_layouts_of_other_programs_are_no_violation(tmp_path: Path):
    store = create_store(tmp_path / "store")
    directory = store.steps_dir("r0", 0)
    directory.mkdir(parents=True)
    table = step_table([row for name in "xy" for row in trajectory(name, "A a B b C")])
    for column, type_ in (("state", pa.large_string()), ("step_index", pa.int64())):
        index = table.schema.get_field_index(column)
        table = table.set_column(index, column, table[column].cast(type_))
    index = table.schema.get_field_index("task_id")
    table = table.set_column(index, "task_id", table["task_id"].dictionary_encode())
    table = table.set_column(table.schema.get_field_index("extra"), "extra", pa.nulls(4))
    pq.write_table(table.select(table.column_names[::-1]), directory / "a[1]'.parquet")
    pq.write_table(step_table(trajectory("z", "A a B")), directory / "b.parquet")
    report = check_store(store)
    assert report.errors == ()
    assert (report.num_steps, report.num_incomplete) == (5, 0)


def test_a_column_whose_name_is_not_text_is_an_error(tmp_path: Path):
    store = whole_store(tmp_path / "store")
    path = store.root / STEPS
    path.write_bytes(path.read_bytes().replace(b"thought", b"\xffhought"))
    errors = {(error.rule.name, error.file) for error in check_store(store).errors}
    assert ("readable", STEPS) in errors
