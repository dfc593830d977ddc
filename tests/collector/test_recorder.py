"""What is logged is what a reader finds, and wrong input is refused where it is logged."""

import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.collector import StepRecorder
from graphcredit.collector.recording import journal as journal_module
from graphcredit.collector.recording.recovery import recover_spools
from graphcredit.collector.recording.spool_format import SpoolHeader
from graphcredit.store import Store, open_store, read_steps
from graphcredit.store.errors import InputError, RecorderError, StepRefusedError
from graphcredit.store.schema import STEP_SCHEMA

GOOD: dict[str, Any] = {"state": "A", "action": "go", "next_state": "B", "reward": 1}


def _recorder(root: Path, **options: Any) -> StepRecorder:
    names: dict[str, Any] = {"run_id": "r0", "iteration": 3, "worker_id": "w7"}
    return StepRecorder(root / "store", **(names | options))


def _rows(root: Path) -> list[dict[str, Any]]:
    return [row for table in read_steps(open_store(root / "store")) for row in table.to_pylist()]


def _log_chain(trajectory: Any, length: int) -> None:
    for index in range(length):
        trajectory.log(state=str(index), action="a", next_state=str(index + 1), reward=0)


def test_every_column_reads_back_as_it_was_logged(tmp_path: Path):
    with (
        _recorder(tmp_path) as recorder,
        recorder.trajectory(task_id="kitchen-12", trajectory_id="x") as trajectory,
    ):
        trajectory.log(
            **GOOD,
            observation="You see a door.",
            thought="Öffnen?",
            admissible_actions=["go", "wait"],
            is_action_valid=np.False_,
            cost=np.float32(2.5),
            score=np.float32(0.75),
            oracle_distance=3,
            next_oracle_distance=2.0,
            images=[b"\x89PNG\xff", "images/a.png", {"path": "images/b.png"}],
            prompt_ids=[1, 2, 3],
            response_ids=np.array([7, 8]),
            response_logprobs=[-0.5, float(np.float32(-1.25))],
            temperature=0.5,
            top_p=None,
            top_k=np.int64(40),
            policy_version="v1",
            extra={"seed": 7},
        )
        trajectory.end(success=np.True_)
    (row,) = _rows(tmp_path)
    assert row.pop("logged_at").tzinfo is not None
    assert row == {
        "run_id": "r0",
        "iteration": 3,
        "task_id": "kitchen-12",
        "trajectory_id": "x",
        "step_index": 0,
        "state": "A",
        "next_state": "B",
        "observation": "You see a door.",
        "thought": "Öffnen?",
        "action": "go",
        "admissible_actions": ["go", "wait"],
        "is_action_valid": False,
        "reward": 1.0,
        "cost": 2.5,
        "score": 0.75,
        "oracle_distance": 3.0,
        "next_oracle_distance": 2.0,
        "terminated": True,
        "truncated": False,
        "success": True,
        "images": [
            {"bytes": b"\x89PNG\xff", "path": None},
            {"bytes": None, "path": "images/a.png"},
            {"bytes": None, "path": "images/b.png"},
        ],
        "prompt_ids": [1, 2, 3],
        "response_ids": [7, 8],
        "response_logprobs": [-0.5, -1.25],
        "temperature": 0.5,
        "top_p": None,
        "top_k": 40,
        "policy_version": "v1",
        "worker_id": "w7",
        "extra": '{"seed": 7}',
    }


def test_a_shard_has_the_schema_and_its_version(tmp_path: Path):
    with _recorder(tmp_path) as recorder:
        recorder.trajectory(task_id="t").log(**GOOD)
    (shard,) = open_store(tmp_path / "store").shards()
    assert shard.path.name == "w7-000000.parquet"
    schema = pq.read_schema(shard.path)
    assert schema.equals(STEP_SCHEMA)
    assert schema.metadata[b"graphcredit.schema_version"] == b"1"


def test_what_is_left_out_has_the_documented_defaults(tmp_path: Path):
    with _recorder(tmp_path) as recorder, recorder.trajectory(task_id="t") as trajectory:
        trajectory.log(**GOOD)
    (row,) = _rows(tmp_path)
    assert (row["cost"], row["is_action_valid"]) == (1.0, True)
    assert (row["terminated"], row["truncated"], row["success"]) == (False, False, None)
    assert row["prompt_ids"] is row["extra"] is row["temperature"] is None


@pytest.mark.parametrize(
    ("columns", "rule"),
    [
        ({"reward": float("nan")}, r"reward must be a number from -1e\+24 to 1e\+24: got nan"),
        ({"reward": np.float64("inf")}, "reward must be a number from"),
        ({"reward": 10**400}, "reward must be a number from"),
        ({"reward": -1e39}, r"reward must be a number from -1e\+24 to 1e\+24: got -1e\+39"),
        ({"cost": 1e308}, r"cost must be a number from 1e-24 to 1e\+24: got 1e\+308"),
        ({"score": float("nan")}, r"score must be a number from -1e\+24 to 1e\+24: got nan"),
        ({"oracle_distance": float("inf")}, r"oracle_distance must be a number from 0 to 1e\+24"),
        ({"reward": "1"}, "reward must be a number: got '1'"),
        ({"reward": True}, "reward must be a number: got True"),
        ({"reward": None}, "reward must be a number: got None"),
        ({"cost": 0}, "cost must be a number from 1e-24 to 1e.24: got 0"),
        ({"cost": -1.0}, r"cost must be a number from 1e-24 to 1e.24: got -1\.0"),
        ({"cost": None}, "cost must be a number: got None"),
        ({"state": b"A"}, "state must be a string: got b'A'"),
        ({"next_state": None}, "next_state must be a string: got None"),
        ({"action": "\ud800"}, "action must be text that UTF-8 can encode"),
        ({"is_action_valid": 1}, "is_action_valid must be True or False: got 1"),
        ({"admissible_actions": "go"}, "admissible_actions must be a list of strings"),
        ({"admissible_actions": ["go", 3]}, "admissible_actions must be a string"),
        ({"temperature": 1e39}, r"temperature must be a finite number of at most 3\.4e\+38"),
        ({"top_k": 2**31}, "top_k must be an integer of 32 bits"),
        ({"top_k": 1.0}, "top_k must be an integer: got 1.0"),
        ({"prompt_ids": [1.5]}, "prompt_ids must be a list of integers"),
        ({"prompt_ids": "ab"}, "prompt_ids must be a list of integers"),
        ({"prompt_ids": [2**31]}, "prompt_ids must be integers of 32 bits"),
        ({"prompt_ids": np.array([2**40])}, "prompt_ids must be integers of 32 bits"),
        ({"prompt_ids": np.zeros((1, 2), int)}, "prompt_ids must be .* 1-dimensional"),
        ({"prompt_ids": np.zeros(2)}, "prompt_ids must be a list of integers"),
        (
            {"response_logprobs": [0.0]},
            r"one number for each of response_ids: got array\(.*\) and None",
        ),
        (
            {"response_ids": [1, 2], "response_logprobs": [0.0]},
            r"one number for each of response_ids: got array\(.*\) and array\(\[1, 2\]",
        ),
        ({"response_ids": [1], "response_logprobs": [float("nan")]}, "must be finite numbers"),
        ({"response_ids": [1], "response_logprobs": np.array([1e300])}, "must be finite numbers"),
        ({"extra": "[1]"}, r"extra must be a JSON object, .*got '\[1\]'"),
        ({"extra": '{"a": NaN}'}, "extra must be a JSON object"),
        ({"extra": {"a": float("inf")}}, "extra must be a JSON object"),
        ({"extra": {"a": ["\ud800"]}}, "extra must be a JSON object, without lone surrogates"),
        ({"extra": r'{"\udfff": 1}'}, "extra must be a JSON object, without lone surrogates"),
        ({"extra": {"a": object()}}, "extra must be a JSON object"),
        ({"colour": "red"}, "steps has no column 'colour'; `log` takes state, next_state"),
        ({"step_index": 0}, "step_index is filled by the recorder"),
        ({"success": True}, "success must be set on the last step only"),
        ({"terminated": True}, "success must be told on the step that ends a rollout"),
        ({"truncated": True, "success": "no"}, "success must be True or False: got 'no'"),
    ],
)
def test_a_step_that_breaks_a_rule_is_refused_and_the_trajectory_goes_on(
    tmp_path: Path, columns: dict[str, Any], rule: str
):
    with (
        _recorder(tmp_path) as recorder,
        recorder.trajectory(task_id="t0", trajectory_id="x") as trajectory,
    ):
        trajectory.log(state="0", action="go", next_state="A", reward=0)
        with pytest.raises(StepRefusedError, match=rf"{rule}(?s:.*)step 1 of rollout 'x'"):
            trajectory.log(**(GOOD | columns))
        trajectory.log(**GOOD)
        trajectory.end(success=False)
    rows = _rows(tmp_path)
    assert [(row["step_index"], row["state"]) for row in rows] == [(0, "0"), (1, "A")]
    assert [row["success"] for row in rows] == [None, False]


@pytest.mark.parametrize(
    ("type_", "said"),
    [("pa.int64()", "it does not know int64, that of seed"), ("pa.list_(pa.float32())", "")],
)
def test_a_column_of_a_type_that_the_recorder_does_not_know_fails_at_its_import(
    type_: str, said: str
):
    code = (
        "import pyarrow as pa; from graphcredit.store import schema\n"
        f"seed = schema.Column(name='seed', type={type_}, nullable=True, meaning='')\n"
        "schema.STEP_COLUMNS = (*schema.STEP_COLUMNS, seed)\n"
        "from graphcredit.collector.recording import spool_format, validation\n"
        "row = validation.check_step({**dict.fromkeys(('state', 'action', 'next_state'), 'x'),"
        " 'reward': 1, 'seed': [0.5]})\n"
        "row |= {'task_id': 't', 'trajectory_id': 'x', 'step_index': 0}\n"
        "spool_format.encode_steps([row])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, said in ended.stderr) == (int(bool(said)), True), ended.stderr


def test_a_step_must_start_where_the_one_before_it_led(tmp_path: Path):
    with _recorder(tmp_path) as recorder, recorder.trajectory(task_id="t") as trajectory:
        trajectory.log(**GOOD)
        with pytest.raises(StepRefusedError, match="the step before, 'B': got 'A'"):
            trajectory.log(**GOOD)
    assert len(_rows(tmp_path)) == 1


@pytest.mark.parametrize("ending", ["end", "last step"])
def test_nothing_is_logged_after_the_end(tmp_path: Path, ending: str):
    with _recorder(tmp_path) as recorder, recorder.trajectory(task_id="t") as trajectory:
        if ending == "end":
            trajectory.log(**GOOD)
            trajectory.end(success=True, truncated=True)
        else:
            trajectory.log(**GOOD, truncated=True, success=True)
        with pytest.raises(
            StepRefusedError,
            match="a step can be logged only while its rollout is open: it has ended",
        ):
            trajectory.log(state="B", action="a", next_state="C", reward=0)
        with pytest.raises(
            StepRefusedError,
            match="an end can be logged only while its rollout is open: it has ended",
        ):
            trajectory.end(success=False)
    (row,) = _rows(tmp_path)
    assert (row["terminated"], row["truncated"], row["success"]) == (False, True, True)


def test_a_trajectory_cannot_end_before_its_first_step(tmp_path: Path):
    with _recorder(tmp_path) as recorder:
        trajectory = recorder.trajectory(task_id="t")
        with pytest.raises(StepRefusedError, match="log one before `end`"):
            trajectory.end(success=True)
    assert _rows(tmp_path) == []


def test_a_trajectory_left_by_an_error_is_incomplete_and_not_lost(tmp_path: Path):
    with _recorder(tmp_path) as recorder:
        trajectory = recorder.trajectory(task_id="t")
        with suppress(KeyError), trajectory:
            _log_chain(trajectory, 2)
            raise KeyError
        with pytest.raises(StepRefusedError, match="its `with` block was left"):
            trajectory.end(success=True)
    assert [row["success"] for row in _rows(tmp_path)] == [None, None]


@pytest.mark.parametrize("limit", [{"max_rows": 3}, {"max_bytes": 1}, {"max_age": 1e-9}])
def test_a_full_shard_is_closed_while_an_open_trajectory_keeps_its_last_step(
    tmp_path: Path, limit: dict[str, Any]
):
    with _recorder(tmp_path, **limit) as recorder:
        trajectory = recorder.trajectory(task_id="t")
        _log_chain(trajectory, 8)
        trajectory.end(success=True)
    rows = _rows(tmp_path)
    assert [row["step_index"] for row in rows] == list(range(8))
    assert [row["terminated"] for row in rows] == [False] * 7 + [True]
    assert len(open_store(tmp_path / "store").shards()) >= 2


def test_rows_close_a_shard_when_so_many_are_settled(tmp_path: Path):
    with _recorder(tmp_path, max_rows=3) as recorder:
        trajectory = recorder.trajectory(task_id="t")
        _log_chain(trajectory, 8)
        trajectory.end(success=True)
    sizes = [
        pq.read_metadata(shard.path).num_rows for shard in open_store(tmp_path / "store").shards()
    ]
    assert sizes == [3, 3, 2]


def test_a_recorder_that_logs_nothing_leaves_nothing(tmp_path: Path):
    with _recorder(tmp_path):
        pass
    assert [path.name for path in (tmp_path / "store").rglob("*")] == ["store.json", "spool"]


def test_the_next_recorder_of_a_worker_goes_on_with_the_numbers(tmp_path: Path):
    for _ in range(2):
        with _recorder(tmp_path) as recorder:
            recorder.trajectory(task_id="t").log(**GOOD)
    names = [shard.path.name for shard in open_store(tmp_path / "store").shards()]
    assert names == ["w7-000000.parquet", "w7-000001.parquet"]
    assert len({row["trajectory_id"] for row in _rows(tmp_path)}) == 2


def test_a_trajectory_id_is_used_once(tmp_path: Path):
    with _recorder(tmp_path) as recorder:
        recorder.trajectory(task_id="t", trajectory_id="x")
        with pytest.raises(StepRefusedError, match="'x' was used before"):
            recorder.trajectory(task_id="t", trajectory_id="x")
        with pytest.raises(StepRefusedError, match="task_id must be a string that is not empty"):
            recorder.trajectory(task_id="")


def test_threads_hold_trajectories_open_at_the_same_time(tmp_path: Path):
    def play() -> None:
        with recorder.trajectory(task_id="t") as trajectory:
            _log_chain(trajectory, 50)
            trajectory.end(success=True)

    with _recorder(tmp_path, max_rows=17) as recorder:
        threads = [threading.Thread(target=play) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    rows = _rows(tmp_path)
    assert len({(row["trajectory_id"], row["step_index"]) for row in rows}) == len(rows) == 400
    assert sum(row["success"] is True and row["step_index"] == 49 for row in rows) == 8


def test_logged_at_does_not_decrease_when_the_clock_goes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    clock = iter([5_000_000, 3_000_000, 9_000_000])
    monkeypatch.setattr("time.time_ns", lambda: next(clock))
    with _recorder(tmp_path) as recorder:
        _log_chain(recorder.trajectory(task_id="t"), 3)
    assert [row["logged_at"].microsecond for row in _rows(tmp_path)] == [5000, 5000, 9000]


def test_arrays_are_kept_as_they_were_when_logged(tmp_path: Path):
    ids, logprobs = np.array([1, 2], np.int32), np.array([-1, -2], np.float32)
    with _recorder(tmp_path) as recorder:
        recorder.trajectory(task_id="t").log(**GOOD, response_ids=ids, response_logprobs=logprobs)
        ids[:] = 0
        logprobs[:] = 0
    (row,) = _rows(tmp_path)
    assert (row["response_ids"], row["response_logprobs"]) == ([1, 2], [-1, -2])


def test_a_worker_has_one_live_recorder(tmp_path: Path):
    with _recorder(tmp_path):
        with pytest.raises(RecorderError, match="one recorder at a time: 'w7' has a live one"):
            _recorder(tmp_path, iteration=4)
        with _recorder(tmp_path, worker_id="w8"):
            pass
    with _recorder(tmp_path, iteration=4):
        pass


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("run_id", "a/b"),
        ("worker_id", ""),
        ("iteration", -1),
        ("iteration", "3"),
        ("durability", "hope"),
        ("max_rows", 0),
        ("max_bytes", 1 << 31),
        ("max_age", 0),
    ],
)
def test_options_out_of_range_are_refused_by_name(tmp_path: Path, option: str, value: Any):
    with pytest.raises(InputError, match=option):
        _recorder(tmp_path, **{option: value})


def test_a_closed_recorder_takes_no_more(tmp_path: Path):
    with _recorder(tmp_path) as recorder:
        trajectory = recorder.trajectory(task_id="t")
    recorder.close()
    with pytest.raises(RecorderError, match="the recorder of worker 'w7' is closed"):
        trajectory.log(**GOOD)


def test_a_forked_process_cannot_use_its_parents_recorder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with _recorder(tmp_path) as recorder:
        trajectory = recorder.trajectory(task_id="t")
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(os, "getpid", lambda: 1)
            with pytest.raises(RecorderError, match="belongs to the process that opened it"):
                trajectory.log(**GOOD)
    assert _rows(tmp_path) == []


def test_fsync_reaches_the_disk_before_log_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with _recorder(tmp_path, durability="fsync") as recorder:
        trajectory = recorder.trajectory(task_id="t")
        synced: list[int] = []
        fsync = os.fsync
        monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(fd), fsync(fd)))
        trajectory.log(**GOOD)
        trajectory.end(success=True)
        assert len(synced) == 2


def test_a_shard_that_cannot_be_written_shows_at_the_next_call_and_costs_no_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def disk_full(store: Store, header: SpoolHeader, rows: list[Any]) -> None:
        raise OSError(28, "No space left on device")

    recorder = _recorder(tmp_path, max_rows=2)
    trajectory = recorder.trajectory(task_id="t")
    with monkeypatch.context() as full:
        full.setattr(journal_module, "write_shard", disk_full)
        _log_chain(trajectory, 3)
        with pytest.raises(RecorderError, match="No space left on device"):
            recorder.close()
    recovered = recover_spools(open_store(tmp_path / "store"))
    assert [one.num_steps for one in recovered] == [2, 1]
    assert [row["step_index"] for row in _rows(tmp_path)] == [0, 1, 2]


def test_where_no_thread_can_be_started_shards_are_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def cannot(*_: object) -> None:
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    monkeypatch.setattr(journal_module.ThreadPoolExecutor, "submit", cannot)
    with _recorder(tmp_path, max_rows=2) as recorder:
        for name in "xyz":
            trajectory = recorder.trajectory(task_id="t", trajectory_id=name)
            _log_chain(trajectory, 3)
    found = sorted((row["trajectory_id"], row["step_index"]) for row in _rows(tmp_path))
    assert found == [(name, index) for name in "xyz" for index in range(3)]


def test_an_interrupt_while_spools_are_exchanged_costs_no_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    recorder = _recorder(tmp_path, max_rows=2)
    trajectory = recorder.trajectory(task_id="t")
    with monkeypatch.context() as context:
        context.setattr(journal_module.ThreadPoolExecutor, "submit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            _log_chain(trajectory, 4)
    with pytest.raises(RecorderError):
        _log_chain(recorder.trajectory(task_id="t"), 4)
    with pytest.raises(RecorderError):
        recorder.close()
    recover_spools(open_store(tmp_path / "store"))
    assert [row["step_index"] for row in _rows(tmp_path)] == [0, 1, 2]


def test_a_step_that_cannot_be_written_is_not_acknowledged_and_stops_the_recorder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Half of the step reaches the file before the disk is full."""
    write = os.write

    def half(descriptor: int, data: memoryview) -> int:
        if len(data) < 200:
            raise OSError(28, "No space left on device")
        return write(descriptor, data[:-100])

    recorder = _recorder(tmp_path)
    trajectory = recorder.trajectory(task_id="t")
    trajectory.log(**GOOD)
    with monkeypatch.context() as full:
        full.setattr(os, "write", half)
        with pytest.raises(RecorderError, match="No space left on device"):
            trajectory.end(success=True)
    with pytest.raises(RecorderError, match="No space left on device"):
        trajectory.end(success=True)
    with pytest.raises(RecorderError):
        recorder.close()
    with _recorder(tmp_path) as following:
        (recovered,) = following.recovered
    assert (recovered.num_steps, recovered.num_bytes_unread) == (1, 0)
    assert [row["success"] for row in _rows(tmp_path)] == [None]


def test_a_thousand_row_slice_is_not_a_row_group(tmp_path: Path):
    with _recorder(tmp_path) as recorder:
        _log_chain(recorder.trajectory(task_id="t"), 1030)
    (shard,) = open_store(tmp_path / "store").shards()
    assert pq.read_metadata(shard.path).num_row_groups == 1
    assert pq.read_table(shard.path)["step_index"].to_pylist() == list(range(1030))
    assert pq.read_schema(shard.path).field("prompt_ids").type == pa.list_(pa.int32())
