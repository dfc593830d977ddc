"""Trajectories that are recorded together are in the store together, or none of them is."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from graphcredit.collector import StepRecorder
from graphcredit.collector.recording.recovery import recover_spools, spool_paths
from graphcredit.collector.recording.spool_format import SpoolWriter, read_spool
from graphcredit.collector.recording.trajectory import Together
from graphcredit.store import Store, create_store, read_steps
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import RecorderError, StepRefusedError


def _recorder(store: Store, **options: Any) -> StepRecorder:
    return StepRecorder(store, run_id="r0", iteration=0, worker_id="w0", **options)


def _log(group: Together | StepRecorder, name: str, *, num_steps: int, ends: bool = True) -> None:
    with group.trajectory(task_id="t", trajectory_id=name) as trajectory:
        for number in range(num_steps):
            trajectory.log(
                state=f"s{number}",
                action="a",
                next_state=f"s{number + 1}",
                reward=0.0,
                prompt_ids=[1, 2],
                response_ids=[3] * number,
                response_logprobs=[-0.5] * number,
            )
        if ends:
            trajectory.end(success=True)


def _log_and_fail(recorder: StepRecorder, kind: type[BaseException]) -> None:
    with recorder.together() as group:
        _log(group, "a", num_steps=2)
        raise kind


def _rows(store: Store) -> list[tuple[str, int, bool | None]]:
    names = ["trajectory_id", "step_index", "success"]
    rows = [row for table in read_steps(store, columns=names) for row in table.to_pylist()]
    return [(row["trajectory_id"], row["step_index"], row["success"]) for row in rows]


def test_they_are_stored_as_if_they_had_been_recorded_one_by_one(tmp_path: Path):
    store = create_store(tmp_path / "s")
    with _recorder(store) as recorder:
        _log(recorder, "before", num_steps=1)
        with recorder.together() as group:
            _log(group, "a", num_steps=2)
            _log(recorder, "between", num_steps=1)
            _log(group, "b", num_steps=1)
    assert _rows(store) == [
        ("before", 0, True),
        ("between", 0, True),
        ("a", 0, None),
        ("a", 1, True),
        ("b", 0, True),
    ]
    (table,) = read_steps(store, columns=["trajectory_id", "response_ids"])
    assert table["response_ids"].to_pylist() == [[], [], [], [3], []]
    assert check_store(store).violations == ()


def test_one_that_has_not_ended_is_incomplete(tmp_path: Path):
    store = create_store(tmp_path / "s")
    with _recorder(store, max_rows=2) as recorder:
        with recorder.together() as group:
            _log(group, "a", num_steps=2, ends=False)
            _log(group, "b", num_steps=2)
        _log(recorder, "c", num_steps=1)
    rows = [("a", 0, None), ("a", 1, None), ("b", 0, None), ("b", 1, True), ("c", 0, True)]
    assert sorted(_rows(store)) == rows


@pytest.mark.parametrize("kind", [KeyboardInterrupt, StepRefusedError])
def test_an_exception_amid_them_leaves_none(tmp_path: Path, kind: type[BaseException]):
    store = create_store(tmp_path / "s")
    with _recorder(store) as recorder:
        with pytest.raises(kind):
            _log_and_fail(recorder, kind)
        with recorder.together():
            pass
        _log(recorder, "b", num_steps=1)
    assert _rows(store) == [("b", 0, True)]


def test_a_torn_write_leaves_none(tmp_path: Path):
    """Wherever a kill cuts the spool off, what is recovered is what was recorded before, or all."""
    store = create_store(tmp_path / "s")
    recorder = _recorder(store)
    _log(recorder, "before", num_steps=1)
    spool = spool_paths(store, "w0").live
    before = spool.stat().st_size
    with recorder.together() as group:
        _log(group, "a", num_steps=3)
        _log(group, "b", num_steps=2)
    cut = Path(shutil.copy(spool, tmp_path / "cut.jsonl"))
    assert len(read_spool(cut).rows) == 6
    for size in range(cut.stat().st_size - 1, before - 1, -1):
        os.truncate(cut, size)
        assert len(read_spool(cut).rows) == 1
    recorder.close()
    assert len(_rows(store)) == 6


def test_a_full_disk_leaves_none_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store = create_store(tmp_path / "s")
    recorder = _recorder(store)
    _log(recorder, "before", num_steps=1)

    def full(self: SpoolWriter, message: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(SpoolWriter, "append", full)
        with (
            pytest.raises(RecorderError, match="No space left on device"),
            recorder.together() as group,
        ):
            _log(group, "a", num_steps=2)
    with pytest.raises(RecorderError, match="No space left on device"):
        recorder.close()
    recover_spools(store)
    assert _rows(store) == [("before", 0, True)]
