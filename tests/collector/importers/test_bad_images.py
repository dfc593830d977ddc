"""Images that are damaged, missing, of other types, or in files that a log must not choose."""

import json
import os
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.collector.importers.images import image_types, neighbour_files
from graphcredit.collector.importers.images.image_types import ImageError, image_type
from graphcredit.collector.importers.images.kept import keep_image
from graphcredit.collector.importers.images.neighbour_files import ImageFolder
from graphcredit.collector.importers.messages.image_parts import address_of
from graphcredit.collector.importers.messages.parts import images_of
from graphcredit.collector.importers.report import ImportReport
from tests.collector.importers.image_files import (
    base64_of,
    data_url,
    gif,
    image_url,
    jpeg,
    png,
    shows,
    webp,
)
from tests.collector.importers.logs import said, write_lines
from tests.collector.importers.read_back import brief, imported, steps_of

WHOLE = {"png": png(), "gif": gif(), "jpg": jpeg(), "webp": webp()}
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def import_part(folder: Path, part: Any) -> ImportReport:
    """Import a row that shows one part, from the folder `log`."""
    row = {"reward": 1, "messages": [shows("Look.", part), said("assistant", "x")]}
    return imported(write_lines(folder / "log" / "w.jsonl", row), folder / "store")


def why_lost(folder: Path, part: Any) -> str:
    """Return why the image of a part is not kept; its row is imported, and no file is written."""
    report = import_part(folder, part)
    assert (report.num_trajectories, report.num_images, report.num_bad_rows) == (1, 0, 0)
    assert brief(folder / "store", "images") == [(None,)]
    assert not (folder / "store" / "images").exists()
    (reason, number) = next(iter(report.left_out.items()))
    assert (len(report.left_out), number) == (1, 1)
    return reason


def test_the_type_is_that_of_the_content():
    assert {name: image_type(content) for name, content in WHOLE.items()} == {
        name: name for name in WHOLE
    }


@pytest.mark.parametrize("name", WHOLE)
@given(data=st.data())
def test_a_file_that_is_cut_off_is_not_kept(name: str, data: st.DataObject):
    whole = WHOLE[name]
    with pytest.raises(ImageError):
        image_type(whole[: data.draw(st.integers(0, len(whole) - 1))])


@given(begin=st.sampled_from([b"", *(whole[:16] for whole in WHOLE.values())]), rest=st.binary())
def test_any_bytes_have_a_type_or_a_reason(begin: bytes, rest: bytes):
    try:
        found = image_type(begin + rest)
    except ImageError as error:
        found = error.reason
    assert found in (*WHOLE, image_types.BROKEN, image_types.UNKNOWN)


@given(
    part=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text() | st.binary(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["type", "image", "image_url", "url", "source", "data", "path"]),
                inner
                | st.sampled_from(["image", "image_url", "tool_result", "file://[", "data:,"]),
            )
        ),
    )
)
def test_any_part_has_an_address_or_none(part: Any):
    folder = ImageFolder(root=Path("/nowhere"), base=Path("/nowhere"))
    for image in images_of([part]):
        with pytest.raises(ImageError):
            keep_image(address_of(image).address, folder)


@pytest.mark.parametrize("make", [png, gif, jpeg, webp])
def test_a_header_of_too_many_pixels_is_refused(make: Any):
    side = 16_000 if make is webp else 60_000
    with pytest.raises(ImageError, match=f"its header says {side} x {side}"):
        image_type(make(width=side, height=side))


def test_the_end_of_a_thumbnail_is_not_that_of_the_image():
    whole = jpeg(thumbnail=jpeg())
    assert image_type(whole) == "jpg"
    with pytest.raises(ImageError, match="cut off"):
        image_type(whole[:-2])


def test_a_changed_byte_of_a_png_is_noticed():
    changed = bytearray(png())
    changed[-20] ^= 1
    with pytest.raises(ImageError, match="damaged"):
        image_type(bytes(changed))


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        (data_url(png())[:-5], image_types.BROKEN),
        (data_url(png()[:40]), image_types.BROKEN),
        ("data:image/png;base64,!!!!", image_types.BROKEN),
        ("data:image/png;base64,é", image_types.BROKEN),
        ("data:image/png;base64", image_types.BROKEN),
        (data_url(png(width=60_000, height=60_000)), image_types.BROKEN),
        (data_url(SVG), image_types.UNKNOWN),
        ("data:image/svg+xml,%3Csvg/%3E", image_types.UNKNOWN),
        (data_url(b""), image_types.UNKNOWN),
        ("http://x.org/a.png", image_types.ELSEWHERE),
        ("HTTPS://x.org/a.png", image_types.ELSEWHERE),
        ("s3://bucket/a.png", image_types.ELSEWHERE),
        ("gone.png", image_types.MISSING),
        ("x" * 5000, image_types.MISSING),
        ("attachment://abc", image_types.MISSING),
        ("/etc/passwd", image_types.NOT_FOLLOWED),
        ("file:///etc/passwd", image_types.NOT_FOLLOWED),
        ("file:///%65tc/passwd", image_types.NOT_FOLLOWED),
        ("file://server/a.png", image_types.NOT_FOLLOWED),
        ("../../../../../../etc/passwd", image_types.NOT_FOLLOWED),
        ("../outside.png", image_types.NOT_FOLLOWED),
        ("link.png", image_types.NOT_FOLLOWED),
        ("folder/outside.png", image_types.NOT_FOLLOWED),
        (".hidden.png", image_types.NOT_FOLLOWED),
        (".git/a.png", image_types.NOT_FOLLOWED),
        ("a\0.png", image_types.NOT_FOLLOWED),
        ("pipe.png", image_types.NOT_FOLLOWED),
        (".", image_types.MISSING),
        ("loop.png", image_types.MISSING),
        ("w.jsonl", image_types.UNKNOWN),
        ("vector.svg", image_types.UNKNOWN),
    ],
)
def test_what_is_not_kept(address: str, reason: str, tmp_path: Path):
    log = tmp_path / "log"
    (log / ".git").mkdir(parents=True)
    for path in (tmp_path / "outside.png", log / ".hidden.png", log / ".git" / "a.png"):
        path.write_bytes(png())
    (log / "link.png").symlink_to(tmp_path / "outside.png")
    (log / "folder").symlink_to(tmp_path)
    (log / "loop.png").symlink_to("loop.png")
    (log / "vector.svg").write_bytes(SVG)
    os.mkfifo(log / "pipe.png")
    assert why_lost(tmp_path, image_url(address)) == reason


@pytest.mark.parametrize("part", [{"type": "image"}, {"type": "input_image", "file_id": "f-1"}])
def test_a_part_that_names_no_image(part: Any, tmp_path: Path):
    assert why_lost(tmp_path, part) == image_types.MISSING


def test_links_within_the_folder_are_followed(tmp_path: Path):
    log = tmp_path / "log"
    log.mkdir()
    (log / "a.png").write_bytes(png())
    (log / "b.png").symlink_to("a.png")
    assert import_part(tmp_path, image_url("b.png")).num_images == 1


def test_a_folder_that_is_imported_may_have_its_images_in_another_one_of_it(tmp_path: Path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(png())
    row = {"reward": 1, "messages": [shows(image_url("../images/a.png")), said("assistant", "x")]}
    log = write_lines(tmp_path / "logs" / "w.jsonl", row)
    assert imported(tmp_path, tmp_path / "all").num_images == 1
    assert imported(log, tmp_path / "alone").left_out == {image_types.NOT_FOLLOWED: 1}


def test_a_file_that_becomes_a_link_is_not_followed(tmp_path: Path):
    (tmp_path / "secret").write_text("secret")
    path = tmp_path / "a.png"
    path.symlink_to("secret")
    with pytest.raises(ImageError):
        neighbour_files.read_file(path)


def test_a_file_that_is_too_large_is_not_read_whole(tmp_path: Path):
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "a.png").write_bytes(png() + bytes(100))
    with patch.object(neighbour_files, "MOST_BYTES", 100):
        assert why_lost(tmp_path, image_url("a.png")) == image_types.BROKEN
    with patch.object(image_types, "MOST_BYTES", 10), pytest.raises(ImageError):
        image_type(png())


def test_bytes_that_are_no_image_are_not_in_the_store(tmp_path: Path):
    part = {"type": "image", "source": {"type": "base64", "data": base64_of(SVG)}}
    assert why_lost(tmp_path, part) == image_types.UNKNOWN
    state = steps_of(tmp_path / "store")[0]["state"]
    assert state.startswith("Look.\n[image ")
    # What is not kept stays in `extra` as the log has it, for JSON can hold it.
    seen = json.loads(steps_of(tmp_path / "store")[0]["extra"])["seen"]
    assert seen[0]["content"][1] == part


def test_a_text_that_looks_like_a_mark_names_no_image(tmp_path: Path):
    report = import_part(tmp_path, {"type": "text", "text": "[image 0123456789ab]"})
    assert (report.num_images, report.left_out) == (0, {})
    assert brief(tmp_path / "store", "images") == [(None,)]
