"""`graphcredit credit` as a user types it."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.in_process import completed as graphcredit
from tests.worlds import trajectory, worked_example, write_store


def test_the_report_counts_what_got_no_credit(tmp_path: Path):
    dead = trajectory("dead", "A a B", success=None, task_id="t0")
    store = write_store(tmp_path / "s", [*worked_example(), *dead])
    result = graphcredit("credit", store.root, "-e", "graphgpo")
    assert result.returncode == 0, result.stderr
    first, *lines = result.stdout.splitlines()
    assert first.startswith(
        "credit for 8 steps of 3 rollouts (1 successful) in 1 group, 1 iteration"
    )
    counts = {" ".join(words[1:]): words[0] for line in lines if (words := line.split())}
    assert counts["incomplete rollouts (1 step): no credit"] == "1"
    assert counts["the last step has no end"] == "1"
    assert counts["states"] == "5"
    assert "'dead' of task 't0'" in result.stderr


def test_a_notice_of_several_iterations_is_one_line(tmp_path: Path):
    for iteration in range(3):
        store = write_store(tmp_path / "s", worked_example(), iteration=iteration)
    graphcredit("credit", store.root, "-e", "spo3")
    write_store(store.root, worked_example()[:4], iteration=0)
    lines = graphcredit("credit", store.root, "-e", "grpo").stderr.splitlines()
    (stale,) = [line for line in lines if "spo3 columns that were kept are stale" in line]
    assert stale.endswith("with --estimator spo3 (in 2 iterations)")


def test_the_report_as_json_is_all_that_stdout_holds(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example(), iteration=4)
    result = graphcredit("credit", store.root, "-e", "grpo,gigpo", "-e", "rloo", "--json")
    assert result.returncode == 0, result.stderr
    names = pq.ParquetFile(store.shards()[0].credit_path).schema_arrow.names
    assert {"grpo_advantage", "gigpo_advantage", "rloo_advantage"} <= {*names}
    (report,) = json.loads(result.stdout)
    assert (report["run_id"], report["iteration"]) == ("r0", 4)
    assert report["num_steps"] == 8
    assert report["unreachable_share"] == pytest.approx(1 / 5)
    assert result.stderr == ""


def test_settings_reach_the_estimator(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    result = graphcredit("credit", store.root, "-e", "grpo", "--set", "grpo.normalize=none")
    assert result.returncode == 0, result.stderr
    table = pq.ParquetFile(store.shards()[0].credit_path).read()
    assert table["grpo_advantage"][0].as_py() == pytest.approx(6.7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-e", "nope"], "no estimator is called 'nope'"),
        (["-e", "grpo", "--set", "grpo.gamma=1"], "grpo has no option 'gamma'"),
        (["-e", "grpo", "--run", "r9"], "for run 'r9'"),
        (["-e", "grpo", "--merge", "magic"], "--merge must be one of exact"),
        (
            ["-e", "grpo", "--invalid-action-penalty", "nan"],
            "penalty must be a finite number: got nan",
        ),
    ],
)
def test_wrong_use_exits_with_2_and_says_what_is_right(
    tmp_path: Path, arguments: list[str], message: str
):
    store = write_store(tmp_path / "s", worked_example())
    result = graphcredit("credit", store.root, *arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert not (store.root / "credit").exists()


def test_waiting_spools_are_named(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    store.spool_dir.mkdir()
    (store.spool_dir / "w9.jsonl").write_bytes(b"")
    result = graphcredit("credit", store.root, "-e", "grpo")
    assert result.returncode == 0, result.stderr
    assert "w9.jsonl holds steps that are in no shard yet" in result.stderr
