"""Logs that other programs wrote come through, where they are at hand."""

import json
from pathlib import Path

import pytest

from tests.cli.in_process import run
from tests.collector.importers.read_back import imported

SAMPLES = Path(__file__).parents[4] / "shared" / "samples"

needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason="no logs in ../shared/samples")


@needs_samples
@pytest.mark.parametrize(
    ("name", "num_trajectories", "num_groups", "num_steps"),
    [
        ("verifiers", 18, 6, 51),
        ("nemo-gym/blackjack", 5, 1, 7),
        ("nemo-gym/grl_sokoban", 5, 5, 90),
        ("nemo-gym/example_multi_step", 5, 5, 21),
        ("nemo-gym/aviary", 5, 5, 15),
        ("inspect", 11, 11, 16),
        ("tau-bench", 48, 12, 698),
    ],
)
def test_a_sample_is_imported_twice_checked_and_credited(
    tmp_path: Path, name: str, num_trajectories: int, num_groups: int, num_steps: int
):
    report = imported(SAMPLES / name, tmp_path)
    assert report.num_bad_rows == 0
    assert (report.num_trajectories, report.num_groups) == (num_trajectories, num_groups)
    assert report.num_steps == num_steps
    assert imported(SAMPLES / name, tmp_path).num_already_there == num_trajectories
    assert "0 errors" in run("check", tmp_path).out
    assert run("credit", tmp_path, "-e", "grpo", "-e", "graphgpo").exit_code == 0


@needs_samples
@pytest.mark.parametrize(("name", "number"), [("swe-agent", 2), ("mini-swe-agent", 2)])
def test_a_sample_without_rewards_is_incomplete(tmp_path: Path, name: str, number: int):
    report = imported(SAMPLES / name, tmp_path)
    assert (report.num_unjudged, report.num_bad_rows) == (number, 0)
    assert f"({number} incomplete): 0 errors" in run("check", tmp_path).out


@needs_samples
def test_what_users_say_is_not_taken_for_noise(tmp_path: Path):
    imported(SAMPLES / "tau-bench", tmp_path)
    credit = run("credit", tmp_path, "-e", "graphgpo", "--merge", "segments", "--json")
    (report,) = json.loads(credit.out)
    assert (report["num_texts"], report["num_merged_texts"]) == (527, 0)
