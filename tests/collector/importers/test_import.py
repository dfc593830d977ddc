"""Importing: as the page says, again, interrupted, with bad rows, compressed, in folders."""

import gzip
import json
import re
import shlex
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.preview import preview_log
from graphcredit.collector.importers.writer import ImportWriter
from graphcredit.store.errors import InputError, OptionError, PathError
from tests.cli.in_process import run
from tests.collector.importers.logs import WALKS, episode, walk, write_json, write_lines
from tests.collector.importers.read_back import brief, imported, small_pieces, steps_of


def test_the_same_log_again_adds_nothing_and_a_longer_one_what_is_new(tmp_path: Path):
    log, store = write_lines(tmp_path / "w.jsonl", *WALKS[:2]), tmp_path / "store"
    assert imported(log, store).num_trajectories == 2
    again = imported(log, store)
    assert (again.num_trajectories, again.num_already_there) == (0, 2)
    write_lines(log, *WALKS)
    grown = imported(log, store)
    assert (grown.num_trajectories, grown.num_already_there) == (1, 2)
    moved = imported(log.rename(tmp_path / "moved.jsonl"), store)
    assert (moved.num_trajectories, moved.num_already_there) == (0, 3)
    assert len(steps_of(store)) == 2 * 3


@pytest.mark.parametrize(
    ("more", "drop_equal", "number"),
    [
        ({}, False, 4),
        ({}, True, 2),
        ({"session_id": "s-1", "task_id": "9f86d081-84c7-4b1e-8f2a-0c6d1f2e3a4b"}, False, 4),
        ({"created_at": "2026-01-01T00:00:00Z"}, False, 2),
        ({"response_id": "resp_68b1f0c2a9d3"}, False, 2),
    ],
)
def test_equal_rows_are_attempts_unless_an_id_or_a_time_says_that_two_files_have_one(
    more: dict[str, Any], drop_equal: bool, number: int, tmp_path: Path
):
    row = {**WALKS[0], **more}
    for name in ("all", "effective"):
        write_lines(tmp_path / "log" / name / "w.jsonl", row, row)
        write_lines(tmp_path / "single" / name / "w.jsonl", {**row, "trial": None})
    report = imported(tmp_path / "log", tmp_path / "store", drop_equal=drop_equal)
    assert report.num_trajectories == number
    assert sum(report.left_out.values()) == 4 - number
    assert any("2 rollouts equal to one" in note for note in report.notes) is (number == 4)
    again = imported(tmp_path / "log", tmp_path / "store", drop_equal=drop_equal)
    assert (again.num_trajectories, again.num_already_there) == (0, number)
    imported(tmp_path / "single", tmp_path / "s", drop_equal=drop_equal)
    ids = {row["trajectory_id"] for row in steps_of(tmp_path / "s")}
    assert ids == ({"all/w", "effective/w"} if number == 4 else {"all/w"})


def test_trajectories_without_a_verdict_are_not_written_twice(tmp_path: Path):
    rows = [{**row, "reward": None} for row in WALKS]
    log, store = write_lines(tmp_path / "w.jsonl", *rows), tmp_path / "store"
    assert imported(log, store).num_unjudged == 3
    again = imported(log, store)
    assert (again.num_trajectories, again.num_already_there) == (0, 3)
    assert len(steps_of(store)) == 6
    assert imported(log, store, state="window:2").num_different == 3


class _KilledError(Exception):
    pass


@pytest.mark.parametrize("number", [0, 1, 2])
def test_an_interrupted_import_goes_on(tmp_path: Path, number: int):
    log, store = write_lines(tmp_path / "w.jsonl", *WALKS), tmp_path / "store"
    write = ImportWriter.write
    written: list[object] = []

    def dying(self: ImportWriter, partition: Any, steps: Any) -> None:
        if len(written) == number:
            raise _KilledError
        written.append(steps)
        write(self, partition, steps)

    with (
        small_pieces(1),  # a trajectory is a batch
        patch.object(ImportWriter, "write", dying),
        pytest.raises(_KilledError),
    ):
        imported(log, store)
    report = imported(log, store)
    assert (report.num_trajectories, report.num_already_there) == (3 - number, number)
    whole = tmp_path / "whole"
    imported(log, whole)
    columns = ("trajectory_id", "step_index", "state", "action", "next_state", "extra")
    assert brief(store, *columns) == brief(whole, *columns)


def test_bad_rows_are_named_and_the_others_imported(tmp_path: Path):
    rows = [
        "{ not json",
        WALKS[0],
        {"task_id": "t", "messages": [{"role": "wizard", "content": "?"}], "reward": 1},
        {**WALKS[1], "reward": "high"},
        "",
        json.dumps({**WALKS[2], "reward": float("nan")}),
        WALKS[2],
        {**WALKS[2], "messages": [*WALKS[2]["messages"], {"role": "assistant", "tool_calls": [7]}]},
    ]
    log, store = write_lines(tmp_path / "w.jsonl", *rows), tmp_path / "store"
    report = imported(log, store)
    assert report.num_trajectories == 2
    places = [bad.where.rpartition(", ")[2] for bad in report.bad_rows]
    assert places == ["line 1", "line 3", "line 4", "line 6", "line 8"]
    assert "must be JSON" in report.bad_rows[0].reason
    assert "messages" in report.bad_rows[1].reason
    assert "the reward must be a finite number: got 'high'" in report.bad_rows[2].reason
    ended = run("import", log, store)
    assert ended.exit_code == 1
    assert f"bad: {log}, line 4: the reward must be a finite number" in ended.err
    assert "5 bad rows, not imported" in ended.out


def test_ids_of_the_log_must_be_unique(tmp_path: Path):
    other = episode()
    other["traces"][0]["rewards"] = {}
    log = write_lines(tmp_path / "traces.jsonl", episode(), episode(), other)
    report = imported(log, tmp_path / "store")
    assert report.num_trajectories == 1
    assert report.left_out["copy of a rollout that was read before"] == 1
    assert "'trace-1' is that of an earlier one with other steps" in report.bad_rows[0].reason


def test_compressed_logs(tmp_path: Path):
    plain = write_lines(tmp_path / "w.jsonl", *WALKS).read_bytes()
    packed = tmp_path / "packed"
    packed.mkdir()
    (packed / "a.jsonl.gz").write_bytes(gzip.compress(plain))
    (packed / "b.jsonl.zst").write_bytes(pa.compress(plain, "zstd", asbytes=True))
    (packed / "c.json.gz").write_bytes(gzip.compress(json.dumps(WALKS).encode()))
    report = imported(packed, tmp_path / "store", drop_equal=True)
    assert (report.num_records, report.num_trajectories) == (9, 3)
    assert report.left_out == {"copy of a rollout that was read before": 6}


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_a_file_that_is_cut_off_is_a_bad_row(tmp_path: Path, suffix: str):
    rows = [walk("kitchen", str(number), trial=number) for number in range(2000)]
    plain = write_lines(tmp_path / "w.jsonl", *rows).read_bytes()
    packed = gzip.compress(plain) if suffix == "gz" else pa.compress(plain, "zstd", asbytes=True)
    path = tmp_path / f"cut.jsonl.{suffix}"
    path.write_bytes(packed[: len(packed) * 2 // 3])
    report = imported(path, tmp_path / "store")
    if suffix == "gz":
        assert report.num_trajectories > 0
    assert "damaged" in report.bad_rows[-1].reason


def test_what_is_no_log(tmp_path: Path):
    with pytest.raises(PathError, match="there is no log at"):
        imported(tmp_path / "nothing.jsonl", tmp_path / "store")
    other = write_json(tmp_path / "config.json", {"learning_rate": 1})
    with pytest.raises(InputError, match="must be a log of a known format"):
        imported(other, tmp_path / "store")
    with pytest.raises(OptionError, match=r"import\.format must be one of verifiers, "):
        imported(other, tmp_path / "store", format="nothing")
    report = imported(other, tmp_path / "store", format="messages")
    assert "its fields: learning_rate" in report.bad_rows[0].reason
    assert not (tmp_path / "store").exists()


def test_try_shows_and_writes_nothing(tmp_path: Path):
    log, store = write_lines(tmp_path / "w.jsonl", *WALKS), tmp_path / "store"
    ended = run("import", log, "--try", 2)
    assert ended.exit_code == 0
    assert ended.out.startswith(
        "the first 2 rollouts would be imported like this; nothing was written"
    )
    assert "every group has one rollout" not in ended.out  # the third may be of the same group
    assert "3 states, 1 of them shared" in ended.out
    assert "50% of the steps are alone" in ended.out
    ended = run("import", log, store, "--try", 3, "--json")
    report = json.loads(ended.out)
    assert (report["num_states"], report["num_shared_states"]) == (3, 2)
    assert report["sample"]["state"] == "kitchen"
    assert not store.exists()


def test_wrong_use(tmp_path: Path):
    log = write_lines(tmp_path / "w.jsonl", *WALKS)
    ended = run("import", log)
    assert ended.exit_code == 2
    assert "STORE must be named" in ended.err
    assert run("import", log, tmp_path / "s", "--state", "first").exit_code == 2
    assert run("import", log, tmp_path / "s", "--run", "a/b").exit_code == 2


def test_a_preview_reports_what_it_shows_and_reads_on_for_evidence(tmp_path: Path):
    broken = {**WALKS[0], "messages": [{"role": "nobody", "content": "x"}]}
    log = write_lines(tmp_path / "walks.jsonl", *WALKS, broken)
    preview = preview_log(log, ImportOptions(), 2)
    report = preview.report
    assert (report.num_trajectories, report.num_steps, report.num_bad_rows) == (2, 4, 0)
    assert sum(table.num_rows for table in preview.sampled) == 6
    assert preview.is_whole


TEXT = (Path(__file__).parents[3] / "docs" / "import.md").read_text(encoding="utf-8")


def test_the_session_of_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (log,) = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
    Path("walks.jsonl").write_text(log, encoding="utf-8")
    session = "".join(re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL))
    commands = re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]
    assert len(commands) == 5
    for command in commands:
        line, *printed = command.splitlines()
        ended = run(*shlex.split(line)[1:])
        assert ended.exit_code == 0, ended.err
        is_whole = "…" not in printed
        lines = ended.out.splitlines()
        assert (lines if is_whole else lines[: len(printed) - 1]) == [
            text for text in printed if text != "…"
        ]
    (turn,) = re.findall(r"```jsonl\n(.*?)```", TEXT, re.DOTALL)
    assert Path("turns.jsonl").read_text(encoding="utf-8").startswith(turn)
