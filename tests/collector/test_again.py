"""A log that is written twice is in the store once."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.collector import StepRecorder
from graphcredit.collector.recording.known_trajectories import KnownTrajectories
from graphcredit.store import open_store, read_steps
from graphcredit.store.errors import SchemaError, StepRefusedError
from tests.worlds import trajectory, write_store

ALREADY = r"rollouts? already in the store, with the same steps"
STEPS: list[dict[str, Any]] = [
    {"state": "A", "action": "go", "next_state": "B", "reward": 0.0, "extra": {"a": 1, "b": "é"}},
    {
        "state": "B",
        "action": "win",
        "next_state": "C",
        "reward": 1,
        "temperature": 0.1,
        "response_ids": [7],
        "response_logprobs": [-0.1],
    },
]


def _recorder(root: Path, worker_id: str, **options: Any) -> StepRecorder:
    return StepRecorder(root / "store", run_id="r0", iteration=0, worker_id=worker_id, **options)


def _log(recorder: Any, steps: list[dict[str, Any]] = STEPS, name: str = "x", **end: Any) -> None:
    with recorder.trajectory(task_id="t", trajectory_id=name) as steps_of:
        for step in steps:
            steps_of.log(**step)
        steps_of.end(**({"success": True} | end))


def _rows(root: Path) -> list[tuple[str, int, str]]:
    names = ["trajectory_id", "step_index", "worker_id"]
    tables = read_steps(open_store(root / "store"), columns=names)
    return [tuple(row[name] for name in names) for table in tables for row in table.to_pylist()]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return where a store has the trajectory x of worker w0."""
    with _recorder(tmp_path, "w0") as recorder:
        _log(recorder)
    return tmp_path


@pytest.mark.parametrize("worker_id", ["w0", "w1"])
@pytest.mark.parametrize("by_last_step", [False, True])
def test_what_the_store_has_is_counted_and_not_written_again(
    root: Path, worker_id: str, by_last_step: bool
):
    recorder = _recorder(root, worker_id)
    again = [{**STEPS[0], "extra": '{"b": "\\u00e9", "a": 1}'}, STEPS[1]]
    if by_last_step:
        one = recorder.trajectory(task_id="t", trajectory_id="x")
        one.log(**again[0])
        one.log(**again[1], terminated=True, success=True)
    else:
        _log(recorder, again)
    _log(recorder, name="y")
    with pytest.warns(match=f"1 {ALREADY}"):
        recorder.close()
    assert recorder.num_already_there == 1
    assert _rows(root) == [("x", 0, "w0"), ("x", 1, "w0"), ("y", 0, worker_id), ("y", 1, worker_id)]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"action": "stay"}, r"action is 'win' there, 'stay' here.*\(step 1 of rollout 'x'"),
        ({"reward": 2}, r"reward is 1\.0 there, 2\.0 here"),
        ({"temperature": None}, r"temperature is 0\.1\d* there, None here"),
        ({"response_ids": [8]}, r"response_ids is \[7\] there, \[8\] here"),
        ({"extra": {}}, "extra is None there, '{}' here"),
        ({"truncated": True, "success": True}, "terminated is True there, False here"),
    ],
)
def test_other_steps_under_an_id_of_the_store_are_refused_by_column(
    root: Path, change: dict[str, Any], found: str
):
    shard = r"steps/run_id=r0/iteration=000000/w0-000000\.parquet"
    with (
        _recorder(root, "w1") as recorder,
        pytest.raises(StepRefusedError, match=rf"it is in {shard} and its {found}"),
    ):
        _log(recorder, [STEPS[0], STEPS[1] | change])
    assert recorder.num_already_there == 0
    assert len(_rows(root)) == 2


def test_another_number_of_steps_or_another_end_is_refused(root: Path):
    more = {"state": "C", "action": "go", "next_state": "D", "reward": 0}
    with _recorder(root, "w1") as recorder:
        with pytest.raises(StepRefusedError, match="has 2 steps there, and this is one more"):
            _log(recorder, [*STEPS, more])
        for worker, steps, end, found in (
            ("w2", STEPS[:1], {}, "has 2 steps there, and 1 here"),
            ("w3", STEPS, {"success": False}, "success is True there, False here"),
            ("w4", STEPS, {"truncated": True}, "terminated is True there, False here"),
        ):
            with _recorder(root, worker) as another, pytest.raises(StepRefusedError, match=found):
                _log(another, steps, **end)
    assert len(_rows(root)) == 2


def test_a_trajectory_that_the_store_has_in_part_is_refused_with_the_reason(tmp_path: Path):
    write_store(tmp_path / "store", trajectory("x", "A go B", success=None))
    with _recorder(tmp_path, "w1") as recorder:
        for _ in range(2):
            with pytest.raises(
                StepRefusedError, match=r"already, with 1 step and no end.*`together`"
            ):
                recorder.trajectory(task_id="t0", trajectory_id="x")
        recorder.trajectory(task_id="t0", trajectory_id="x-2").log(**STEPS[0])
    assert len(_rows(tmp_path)) == 2


def test_what_other_workers_have_in_spools_and_several_shards_is_known(tmp_path: Path):
    other = _recorder(tmp_path, "w0", max_rows=1)
    _log(other)  # over two shards, or a shard and a spool
    recorder = _recorder(tmp_path, "w1")
    _log(recorder)
    with pytest.raises(StepRefusedError, match="'x' was used before"):
        recorder.trajectory(task_id="t", trajectory_id="x")
    with pytest.warns(match=ALREADY):
        recorder.close()
    other.close()
    assert [row[:2] for row in _rows(tmp_path)] == [("x", 0), ("x", 1)]


def test_of_trajectories_that_are_written_together_only_new_ones_are(root: Path):
    recorder = _recorder(root, "w1")
    with recorder.together() as group:
        _log(group)
        _log(group, name="y")
    with pytest.warns(match=ALREADY):
        recorder.close()
    assert [row[:2] for row in _rows(root)] == [("x", 0), ("x", 1), ("y", 0), ("y", 1)]


def test_an_id_of_another_iteration_is_free(root: Path):
    with StepRecorder(root / "store", run_id="r0", iteration=1, worker_id="w1") as recorder:
        _log(recorder, name="x")
    assert len(_rows(root)) == 4


def test_the_store_is_not_read_for_ids_that_the_recorder_makes(
    root: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(KnownTrajectories, "find", None)
    with _recorder(root, "w1") as recorder, recorder.trajectory(task_id="t") as steps:
        steps.log(**STEPS[0])


def test_an_id_is_refused_where_a_shard_cannot_tell_its_own(root: Path):
    shard = open_store(root / "store").shards()[0].path
    shard.write_bytes(b"PAR1")
    with (
        _recorder(root, "w1") as recorder,
        pytest.raises(SchemaError, match=r"w0-000000\.parquet cannot be read"),
    ):
        recorder.trajectory(task_id="t", trajectory_id="new")


def test_a_shard_of_many_row_groups_is_read_group_by_group(tmp_path: Path):
    rows = [row for n in range(6) for row in trajectory(f"x{n}", "A a B b C", success=True)]
    shard = write_store(tmp_path / "store", rows).shards()[0].path
    pq.write_table(pq.ParquetFile(shard).read(), shard, row_group_size=3)
    recorder = _recorder(tmp_path, "w1")
    for number in range(6):
        with recorder.trajectory(task_id="t0", trajectory_id=f"x{number}") as steps:
            steps.log(state="A", action="a", next_state="B", reward=0)
            steps.log(state="B", action="b", next_state="C", reward=0)
            steps.end(success=True)
    with pytest.warns(match=f"6 {ALREADY}"):
        recorder.close()
    assert pa.concat_tables(read_steps(open_store(tmp_path / "store"))).num_rows == 12
