"""Arrays of steps: `.npz`, and HDF5 in the shapes of D4RL, robomimic and Minari."""

import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from graphcredit.collector.importers.logs.arrays import records_of_arrays
from tests.collector.importers.logs import write_lines
from tests.collector.importers.read_back import brief, imported

FLAT: dict[str, Any] = {  # two episodes of two steps, one won
    "observations": np.array([[0.0, 1.0], [0.5, 2.0], [0.0, 1.0], [0.5, 3.0]], np.float32),
    "actions": np.array([1, 3, 2, 4]),
    "rewards": np.array([0.0, 1.0, 0.0, 0.0]),
    "terminals": np.array([False, True, False, False]),
    "timeouts": np.array([False, False, False, True]),
}
ONE: dict[str, Any] = {
    "observations": np.arange(3),
    "actions": np.array([1, 3]),
    "rewards": np.array([0.0, 1.0]),
}
STEP = ("state", "action", "reward", "terminated", "truncated", "success")


def test_steps_of_many_episodes_in_arrays_of_one_length(tmp_path: Path):
    np.savez(tmp_path / "flat.npz", **FLAT, weights=np.zeros((7, 7)))
    report = imported(tmp_path / "flat.npz", tmp_path / "store")
    assert (report.num_files, report.num_records) == ({"steps": 1}, 2)
    assert sorted(brief(tmp_path / "store", *STEP)) == [
        ("[0, 1]", "1", 0.0, False, False, None),
        ("[0, 1]", "2", 0.0, False, False, None),
        ("[0.5, 2]", "3", 1.0, True, False, True),
        ("[0.5, 3]", "4", 0.0, False, True, False),
    ]


def test_an_episode_a_file_has_what_its_last_action_led_to(tmp_path: Path):
    for number in range(2):
        np.savez_compressed(tmp_path / f"e{number}.npz", **ONE, success=np.array(number == 1))
    report = imported(tmp_path, tmp_path / "store")
    assert (report.num_success, report.num_failed) == (1, 1)
    steps = brief(tmp_path / "store", "state", "action", "next_state")
    assert steps == [("0", "1", "1"), ("1", "3", "2")] * 2


class Group(dict[str, Any]):
    """A group as h5py has it."""

    attrs = {"seed": np.int64(3), "model_file": "<xml>" * 100}  # noqa: RUF012


def _demo(reward: float) -> Group:
    seen = {"hand": np.array([[1.0], [2.0]]), "cup": np.array([[5.0], [6.0]])}
    return Group(obs=seen, actions=np.array([[1], [3]]), rewards=np.array([0.0, reward]))


def test_a_group_an_episode_is_a_record_in_natural_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    demos = Group({f"demo_{number}": _demo(number % 2) for number in (0, 1, 10, 2)})
    mask = {"train": np.array([b"demo_0", b"demo_1"]), "valid": np.array([b"demo_2", b"demo_10"])}
    h5py = SimpleNamespace(File=lambda path, mode: nullcontext(Group(data=demos, mask=mask)))
    monkeypatch.setitem(sys.modules, "h5py", h5py)
    path = tmp_path / "d.hdf5"
    path.write_bytes(b"\x89HDF")
    records = list(records_of_arrays(path, 1 << 20))
    assert [record.place for record in records] == [f"data/demo_{n}" for n in (0, 1, 2, 10)]
    assert records[1].value == {
        "trajectory_id": "demo_1",
        "seed": 3,
        "actions": [[1], [3]],
        "rewards": [0.0, 1.0],
        "obs": [{"hand": [1.0], "cup": [5.0]}, {"hand": [2.0], "cup": [6.0]}],
    }
    assert "must have at most" in str(next(records_of_arrays(path, 10)).value)
    report = imported(path, tmp_path / "store")
    assert (report.num_success, report.num_failed, report.num_steps) == (1, 3, 8)
    assert brief(tmp_path / "store", *STEP[:2])[0] == ('{"cup": [5], "hand": [1]}', "[1]")


def test_hdf5_without_its_reader_is_one_bad_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    (tmp_path / "d.h5").write_bytes(b"\x89HDF")
    (bad,) = imported(tmp_path / "d.h5", tmp_path / "store").bad_rows
    assert "which h5py reads: pip install" in bad.reason


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"weights": np.zeros((3, 3))}, "two of one length"),
        ({"actions": np.array([{}, {}], object), "rewards": np.zeros(2)}, "allow_pickle=False"),
    ],
)
def test_other_arrays_are_named_and_the_rest_is_imported(
    arrays: dict[str, Any], reason: str, tmp_path: Path
):
    np.savez(tmp_path / "a.npz", **arrays)
    (tmp_path / "b.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:100])
    write_lines(tmp_path / "c.jsonl", {"states": [1], "actions": [2], "rewards": [1]})
    report = imported(tmp_path, tmp_path / "store")
    assert report.num_trajectories == 1
    assert [Path(bad.where).name for bad in report.bad_rows] == ["a.npz", "b.npz"]
    assert reason in report.bad_rows[0].reason
