"""What the core says of texts that no reader read."""

from pathlib import Path
from typing import Any

import pytest

from graphcredit.collector.importers.coverage import unread
from graphcredit.collector.importers.coverage.covered import Coverage
from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.rollout import LoggedRollout
from graphcredit.collector.importers.recognition import rollouts_in
from graphcredit.collector.importers.table import format_named
from tests.collector.importers.logs import WALKS, called, said, write_lines
from tests.collector.importers.read_back import imported

CHAT = [said("user", "the hall"), said("assistant", "go to the garden")]
ROW: dict[str, Any] = {"messages": CHAT, "reward": 1}


def unread_of(row: dict[str, Any]) -> dict[str, int]:
    record = Record(path=Path("a.jsonl"), place="line 1", value=row, share=1.0)
    row_format, covered = format_named("messages"), Coverage()
    covered.add(row, rollouts_in(row_format.read(record)), row_format.aside)
    assert covered.num_records == 1
    return {path: count.num_characters for path, count in covered.unread.items()}


@pytest.mark.parametrize(
    "row",
    [
        WALKS[0],
        {**ROW, "messages": [*CHAT, called("go", to="the kitchen", times=2)]},
        {**ROW, "messages": [*CHAT, said("assistant", "<think>why so</think>go on")]},
        {**ROW, "messages": [*CHAT, {"role": "user", "content": [{"type": "text", "text": "a"}]}]},
        {**ROW, "rendered": "USER: the hall ASSISTANT: go to the garden"},
        {**ROW, "tools": [{"name": "go", "description": "goes some way"}], "id": "x y"},
    ],
)
def test_all_of_a_row_is_read(row: dict[str, Any]):
    assert unread_of(row) == {}


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"remark": "a door is open"}, "remark"),
        ({"deep": [{"er": {"text": "x y"}}, {"er": {"text": "z"}}]}, "deep.*.er.text"),
        ({"said": "go to the gar"}, "said"),
        ({"messages": [*CHAT, {**CHAT[0], "aside": "not ok"}]}, "messages.*.aside"),
    ],
)
def test_any_text_that_no_step_has_is_named(more: dict[str, Any], path: str):
    assert list(unread_of({**ROW, **more})) == [path]


def test_a_file_that_would_stay_unread_is_refused_with_its_fields(tmp_path: Path):
    rows = [{**ROW, "transcript": "the hall was dark and the garden was far away"}] * 3
    log = write_lines(tmp_path / "a.jsonl", *rows)
    refused = imported(log, tmp_path / "refused")
    assert (refused.num_trajectories, refused.num_bad_rows) == (0, 1)
    assert "`transcript`: 3 of 3 records, 65.2% of their text" in refused.bad_rows[0].reason
    taken = imported(log, tmp_path / "taken", max_unread=100.0)
    assert taken.num_trajectories == 3
    note = next(note for note in taken.notes if "in no step" in note)
    assert "`transcript`: 3 of 3 records, 65.2% of their text" in note


def test_fields_beyond_the_most_are_counted_together():
    row = {f"field {n}": "some words" for n in range(400)}
    coverage = Coverage()
    coverage.add(row, [LoggedRollout(messages=(), record=row)], ())
    assert len(coverage.unread) == 301
    assert coverage.num_unread == coverage.num_characters == 4000


def test_of_a_record_with_very_many_texts_the_first_of_a_field_speak_for_it_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    texts = [f"<b>the hall</b>{n} go to the garden" for n in range(9)]
    row = {**ROW, "shown": texts, "notes": [f"nobody reads {n}" for n in range(9)]}
    whole = unread_of(row)
    assert list(whole) == ["notes.*"]
    monkeypatch.setattr(unread, "_MOST_COMPARISONS", 20)
    assert unread_of(row) == whole
    report = imported(write_lines(tmp_path / "a.jsonl", row), tmp_path / "s", max_unread=100.0)
    (note,) = (note for note in report.notes if "too many" in note)
    # A text is compared with the two of the steps: the nine shown and one note were.
    assert note.endswith("decided about texts of `notes.*` (8)")
