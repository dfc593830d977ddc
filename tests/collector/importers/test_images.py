"""Images of logs: which steps have them, and what an import keeps once."""

import hashlib
import json
from copy import deepcopy
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.collector.importers.writer import ImportWriter
from tests.cli.in_process import run
from tests.collector.importers.image_files import base64_of, data_url, image_url, png, shows
from tests.collector.importers.logs import (
    atif,
    episode,
    gym_row,
    inspect_log,
    inspect_sample,
    said,
    write_json,
    write_lines,
)
from tests.collector.importers.read_back import brief, imported, small_pieces, steps_of
from tests.collector.importers.rows import openhands_row

A, B, C = png(1), png(2), png(3)


def path_of(content: bytes) -> str:
    digest = hashlib.sha256(content).hexdigest()
    return f"images/{digest[:2]}/{digest}.png"


def mark_of(content: bytes) -> str:
    return f"[image {hashlib.sha256(content).hexdigest()[:12]}]"


def shown(store: Path) -> list[list[bytes]]:
    """Return the contents of the images of each step."""
    named = [step["images"] or [] for step in steps_of(store)]
    assert all(image["bytes"] is None for images in named for image in images)
    return [[(store / image["path"]).read_bytes() for image in images] for images in named]


def files(store: Path) -> list[str]:
    found = (path for path in (store / "images").rglob("*") if path.is_file())
    return sorted(path.relative_to(store).as_posix() for path in found)


def row(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"task_id": "t", "reward": 1, "messages": list(messages), **more}


def test_a_step_has_the_images_of_its_prompt(tmp_path: Path):
    messages = [
        shows("Find it.", image_url(data_url(A)), "Now."),
        said("assistant", "look"),
        shows(image_url(data_url(B)), image_url(data_url(A)), role="tool"),
        said("assistant", "done"),
        shows("The end.", image_url(data_url(C))),
    ]
    log, store = write_lines(tmp_path / "w.jsonl", row(*messages)), tmp_path / "store"
    report = imported(log, store)
    assert (report.num_images, report.num_bad_images, report.left_out) == (4, 0, {})
    assert shown(store) == [[A], [A, B, A]]
    states = [f"Find it.\n{mark_of(A)}\nNow.", f"{mark_of(B)}\n{mark_of(A)}"]
    assert brief(store, "state") == [(state,) for state in states]
    assert files(store) == sorted(map(path_of, (A, B, C)))
    extra = json.loads(steps_of(store)[0]["extra"])
    assert extra["seen"][0]["content"][1] == image_url(path_of(A))
    assert run("check", store).exit_code == 0


ADDRESSES: dict[str, Any] = {
    "openai": image_url(data_url(A)),
    "bare url": {"type": "image_url", "image_url": data_url(A)},
    "responses": {"type": "input_image", "image_url": data_url(A)},
    "anthropic": {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": base64_of(A)},
    },
    "tool result": {
        "type": "tool_result",
        "tool_use_id": "1",
        "content": [{"type": "image", "source": {"type": "base64", "data": base64_of(A)}}],
    },
    "langchain": {"type": "image", "base64": base64_of(A), "mime_type": "image/png"},
    "older langchain": {"type": "image", "source_type": "base64", "data": base64_of(A)},
    "mcp": {"type": "image", "data": base64_of(A), "mimeType": "image/png"},
    "gemini": {"inline_data": {"mime_type": "image/png", "data": base64_of(A)}},
    "inspect": {"type": "image", "image": data_url(A), "detail": "auto"},
    "qwen": {"type": "image", "image": base64_of(A)},
    "openhands": {"type": "image", "image_urls": [data_url(A)]},
    "folded base64": image_url("data:image/png;base64," + base64_of(A).replace("A", "A\n")),
    "file": {"type": "image", "path": "a.png"},
    "file url": image_url("file:///FOLDER/shots/../a.png"),
    "absolute": {"type": "image", "image": "/FOLDER/a.png"},
    "percent": image_url("file:///FOLDER/a%2Epng"),
    "atif": {"type": "image", "source": {"media_type": "image/png", "path": "./a.png"}},
}


@pytest.mark.parametrize("name", ADDRESSES)
def test_what_may_have_an_image(name: str, tmp_path: Path):
    folder = str(tmp_path).lstrip("/")
    part = json.loads(json.dumps(ADDRESSES[name]).replace("FOLDER", folder))
    (tmp_path / "a.png").write_bytes(A)
    log = write_lines(tmp_path / "w.jsonl", row(shows("Look.", part), said("assistant", "a")))
    report = imported(log, tmp_path / "store")
    assert (report.num_images, report.bad_images) == (1, [])
    assert shown(tmp_path / "store") == [[A]]
    apart = "\n\n" if name == "tool result" else "\n"
    assert brief(tmp_path / "store", "state") == [(f"Look.{apart}{mark_of(A)}",)]


def test_several_urls_of_one_part_are_several_images(tmp_path: Path):
    part = {"type": "image", "image_urls": [data_url(A), "https://x.org/b.png", data_url(B)]}
    log = write_lines(tmp_path / "w.jsonl", row(shows(part), said("assistant", "a")))
    report = imported(log, tmp_path / "store")
    assert shown(tmp_path / "store") == [[A, B]]
    assert report.left_out == {"image at an address that is not fetched": 1}
    first, second, third = steps_of(tmp_path / "store")[0]["state"].split("\n")
    assert (first, third) == (mark_of(A), mark_of(B))
    assert second.startswith("[image ")


def test_states_that_differ_in_an_image_stay_apart(tmp_path: Path):
    def walk(picture: bytes, trial: int) -> dict[str, Any]:
        seen = shows("board", image_url(data_url(picture)))
        messages = [shows("start"), said("assistant", "go"), seen, said("assistant", "on")]
        return row(*messages, trial=trial, reward=trial % 2)

    rows = [walk(picture, n) for n, picture in enumerate((A, B, A, B))]
    imported(write_lines(tmp_path / "w.jsonl", *rows), tmp_path / "store")
    store = tmp_path / "store"
    assert run("credit", store, "-e", "graphgpo", "--merge", "exact").exit_code == 0
    query = "SELECT DISTINCT state, state_id FROM enriched WHERE step_index = 1"
    rows = json.loads(run("sql", store, query, "--format", "json").out)
    assert {each["state"] for each in rows} == {f"board\n{mark_of(each)}" for each in (A, B)}
    assert len({each["state_id"] for each in rows}) == 2


def test_formats_with_messages_of_their_own(tmp_path: Path):
    part = {"type": "image", "source": {"media_type": "image/png", "path": "shots/b.png"}}
    steps = atif()["steps"]
    steps[0]["message"] = [{"type": "text", "text": "find it"}, image_url(data_url(A))]
    steps[2]["observation"]["results"][0]["content"] = [part]
    folder = tmp_path / "atif" / "trial"
    write_json(folder / "trajectory.json", atif(steps=steps))
    (folder / "shots").mkdir()
    (folder / "shots" / "b.png").write_bytes(B)
    imported(tmp_path / "atif", tmp_path / "a")
    assert shown(tmp_path / "a") == [[A], [A, B]]

    call = {"type": "computer_call_output", "call_id": "c"}
    items = gym_row()["response"]["output"]
    output = {"type": "computer_screenshot", "image_url": data_url(B)}
    items[4] = {**call, "output": output}
    items.append({"type": "message", "role": "assistant", "content": "end"})
    log = write_lines(tmp_path / "gym.jsonl", gym_row(response={"model": "m", "output": items}))
    imported(log, tmp_path / "g")
    assert shown(tmp_path / "g") == [[], [], [B]]


def test_attachments_of_inspect(tmp_path: Path):
    shot = {"type": "image", "image": "attachment://shot"}
    gone = {"type": "image", "image": "attachment://gone"}
    messages = [shows("Look.", shot, gone), said("assistant", "a")]
    sample = inspect_sample(messages=messages, attachments={"shot": data_url(A)})
    log = write_json(tmp_path / "log.json", inspect_log(sample))
    report = imported(log, tmp_path / "store")
    assert shown(tmp_path / "store") == [[A]]
    assert report.left_out == {"image that is missing": 1}
    assert [bad.where for bad in report.bad_images] == [str(log)]
    assert "must have its attachments" in report.bad_images[0].reason


def test_images_of_openhands(tmp_path: Path):
    args = {"content": "Fix.", "image_urls": [data_url(A), data_url(B)]}
    older = {"source": "user", "action": "message", "args": args}
    said_it = {"source": "agent", "action": "message", "args": {"content": "ok"}}
    log = write_lines(tmp_path / "output.jsonl", openhands_row(older, said_it, instruction=None))
    imported(log, tmp_path / "store")
    assert shown(tmp_path / "store") == [[A, B]]
    assert brief(tmp_path / "store", "state") == [(f"Fix.\n{mark_of(A)}\n{mark_of(B)}",)]


def test_images_of_verifiers_are_beside_the_tokens(tmp_path: Path):
    made = deepcopy(episode())
    made["traces"][0]["nodes"][0]["message"] = shows("room", image_url(data_url(A)))
    imported(write_lines(tmp_path / "traces.jsonl", made), tmp_path / "store")
    first = steps_of(tmp_path / "store")[0]
    assert first["prompt_ids"] is not None
    assert shown(tmp_path / "store") == [[A], [A]]


MULTIMODAL: list[tuple[dict[str, Any], list[bytes], str]] = [
    (
        {
            "messages": [
                shows({"type": "image"}, "and", {"type": "image"}),
                shows("x", role="assistant"),
            ]
        },
        [A, B],
        f"{mark_of(A)}\nand\n{mark_of(B)}",
    ),
    (
        {"prompt": [said("user", "<image>\nand <image>")], "completion": "x"},
        [A, B],
        f"{mark_of(A)}\nand \n{mark_of(B)}",
    ),
    (
        {"prompt": "What is it?", "completion": [said("assistant", "x")]},
        [A, B],
        f"{mark_of(A)}\n{mark_of(B)}\nWhat is it?",
    ),
    (
        {"conversations": [{"from": "human", "value": "<image>it"}, {"from": "gpt", "value": "x"}]},
        [A],
        f"{mark_of(A)}\nit",
    ),
]


@pytest.mark.parametrize(("messages", "expected", "state"), MULTIMODAL)
@pytest.mark.parametrize("is_trl", [False, True])
def test_rows_with_images_beside_the_messages(
    messages: dict[str, Any], expected: list[bytes], state: str, is_trl: bool, tmp_path: Path
):
    (tmp_path / "b.png").write_bytes(B)
    images = [{"bytes": A, "path": None}, {"bytes": None, "path": "b.png"}]
    trl = {"step": 1, "advantage": 0.0} if is_trl and "prompt" in messages else {}
    made = {"reward": 1.0, "images": images, **trl, **messages}
    pq.write_table(pa.Table.from_pylist([made]), tmp_path / "completions_1.parquet")
    report = imported(tmp_path / "completions_1.parquet", tmp_path / "store")
    assert shown(tmp_path / "store") == [expected]
    assert brief(tmp_path / "store", "state") == [(state,)]
    left = len(images) - len(expected)
    name = "image of a row without a place in its messages"
    assert report.left_out == ({name: left} if left else {})
    assert "\\x89" not in steps_of(tmp_path / "store")[0]["extra"]


def test_a_list_that_is_called_images_and_has_none(tmp_path: Path):
    made = row(said("user", "hall"), said("assistant", "x"), images=["python:3.11", "ubuntu"])
    imported(write_lines(tmp_path / "w.jsonl", made), tmp_path / "store")
    assert brief(tmp_path / "store", "state", "images") == [("hall", None)]


def test_one_image_of_many_rows_is_one_file_also_after_a_kill(tmp_path: Path):
    def made(number: int) -> dict[str, Any]:
        seen = shows(str(number), image_url(data_url(A)), {"type": "image", "path": "b.png"})
        return row(seen, said("assistant", "x"), trial=number)

    (tmp_path / "b.png").write_bytes(B)
    log = write_lines(tmp_path / "w.jsonl", *map(made, range(6)))
    store, write, written = tmp_path / "store", ImportWriter.write, list[object]()

    def dying(self: ImportWriter, partition: Any, steps: Any) -> None:
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(steps)
        write(self, partition, steps)

    with (
        small_pieces(1),
        patch.object(ImportWriter, "write", dying),
        pytest.raises(KeyboardInterrupt),
    ):
        imported(log, store)
    report = imported(log, store)
    assert (report.num_trajectories, report.num_already_there) == (4, 2)
    assert report.num_images == 12
    assert files(store) == sorted(map(path_of, (A, B)))
    assert shown(store) == [[A, B]] * 6
    again = imported(log, store)
    assert (again.num_trajectories, again.num_already_there, again.num_different) == (0, 6, 0)
    assert run("check", store).exit_code == 0


def test_pieces_bring_their_images(tmp_path: Path):
    def made(number: int) -> dict[str, Any]:
        lost = image_url("missing.png") if number == 7 else "fine"
        seen = shows(lost, image_url(data_url(png(number))), {"type": "image", "path": "b.png"})
        return row(seen, said("assistant", "x"), trial=number)

    (tmp_path / "b.png").write_bytes(B)
    log = write_lines(tmp_path / "w.jsonl", *map(made, range(20)))

    with small_pieces(1500):
        report = imported(log, tmp_path / "with", engine="local:2")
    assert report == imported(log, tmp_path / "without")
    assert (report.num_images, report.num_bad_images) == (40, 1)
    assert report.bad_images[0].where == f"{log}, line 8"
    assert shown(tmp_path / "with") == shown(tmp_path / "without")
    assert len(files(tmp_path / "with")) == 20


def test_try_counts_images_and_writes_none(tmp_path: Path):
    parts = image_url(data_url(A)), image_url("https://x.org/a.png")
    log = write_lines(tmp_path / "w.jsonl", row(shows(*parts), said("assistant", "x")))
    found = run("import", log, tmp_path / "store", "--try", 1)
    assert "1 image in their messages" in found.out
    assert "left out: 1 × image at an address that is not fetched" in found.out
    assert found.exit_code == 0
    assert not (tmp_path / "store").exists()


def test_a_bad_image_is_named_and_its_row_imported(tmp_path: Path):
    bad = row(shows("x", image_url("gone.png")), said("assistant", "x"))
    log = write_lines(tmp_path / "w.jsonl", row(shows("y"), said("assistant", "x")), bad)
    found = run("import", log, tmp_path / "store")
    assert found.exit_code == 1
    assert "2 rollouts imported" in found.out
    assert "1 bad image, not kept" in found.out
    assert f"bad image: {log}, line 2: image that is missing: gone.png" in found.err
