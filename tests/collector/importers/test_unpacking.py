"""Logs in archives: each is read as a folder, and nothing leaves the folder that it is given."""

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from graphcredit.collector.importers.report import ImportReport
from graphcredit.store.errors import InputError
from tests.collector.importers.logs import WALKS, write_lines
from tests.collector.importers.read_back import imported


def packed(path: Path, member: str, content: bytes) -> Path:
    """Write an archive of one file."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(member, content)
        return path
    with tarfile.open(path, f"w:{'bz2' if path.suffix == '.bz2' else 'gz'}") as archive:
        info = tarfile.TarInfo(member)
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return path


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tgz", "a.tar.bz2", "a.zip"])
def test_a_log_in_an_archive_is_read(name: str, tmp_path: Path):
    content = write_lines(tmp_path / "w.jsonl", *WALKS).read_bytes()
    archive = packed(tmp_path / name, "deep/w.jsonl", content)
    assert imported(archive, tmp_path / "store").num_trajectories == len(WALKS)
    assert imported(tmp_path, tmp_path / "both").left_out == {
        "copy of a trajectory that was read before": len(WALKS)
    }


def test_a_damaged_archive_is_named_and_the_others_are_read(tmp_path: Path):
    content = write_lines(tmp_path / "w.jsonl", *WALKS).read_bytes()
    whole = packed(tmp_path / "b.tar.gz", "w.jsonl", content).read_bytes()
    (tmp_path / "a.tar.gz").write_bytes(whole[:40])
    report = imported(tmp_path, tmp_path / "store")
    assert [bad.where for bad in report.bad_rows] == [str(tmp_path / "a.tar.gz")]
    assert "it cannot be unpacked to its end" in report.bad_rows[0].reason
    assert report.num_trajectories == len(WALKS)


@pytest.mark.parametrize("name", ["../out.jsonl", "/out.jsonl"])
@pytest.mark.parametrize("kind", ["evil.tar.gz", "evil.zip"])
def test_no_file_is_written_outside(name: str, kind: str, tmp_path: Path):
    content = write_lines(tmp_path / "w.jsonl", *WALKS).read_bytes()
    archive = packed(tmp_path / kind, name, content)
    before = sorted(tmp_path.rglob("*"))
    imported(archive, tmp_path / "store")
    after = {
        path for path in tmp_path.rglob("*") if tmp_path / "store" not in (path, *path.parents)
    }
    assert sorted(after) == before
    assert not Path("/out.jsonl").exists()


@pytest.mark.parametrize("kind", ["evil.tar", "evil.zip"])
def test_a_member_that_cannot_be_unpacked_is_named_and_the_others_are_read(
    kind: str, tmp_path: Path
):
    content = write_lines(tmp_path / "w.jsonl", *WALKS).read_bytes()
    (tmp_path / "w.jsonl").unlink()
    names = [f"{'n' * 300}.jsonl", "a/b.jsonl", "a/b.jsonl/c.jsonl", "d.jsonl"]
    contents = [b"", b"", b"", content]
    if kind == "evil.zip":
        with zipfile.ZipFile(tmp_path / kind, "w") as archive:
            for name, each in zip(names, contents, strict=True):
                archive.writestr(name, each)
    else:
        names.insert(0, "../up.jsonl")
        contents.insert(0, b"")
        with tarfile.open(tmp_path / kind, "w") as archive:
            for name, each in zip(names, contents, strict=True):
                info = tarfile.TarInfo(name)
                info.size = len(each)
                archive.addfile(info, io.BytesIO(each))
    report = imported(tmp_path, tmp_path / "store")
    assert report.num_trajectories == len(WALKS)
    (bad,) = report.bad_rows
    assert bad.where == str(tmp_path / kind)
    assert f"{2 + (kind == 'evil.tar')} members cannot be unpacked" in bad.reason


@pytest.mark.parametrize("kind", ["logs.tar.gz", "logs.zip"])
def test_messages_name_the_archive_and_the_file_in_it(kind: str, tmp_path: Path):
    archive = packed(tmp_path / kind, "deep/w.jsonl", b'{"messages": [}\n{"no": "log"}\n')
    report = imported_with_walks(archive, tmp_path)
    assert [bad.where for bad in report.bad_rows] == [f"{archive}/deep/w.jsonl, line 1"]
    (tmp_path / "again").mkdir()
    archive = packed(tmp_path / "again" / kind, "deep/w.jsonl", b'{"no": "log"}\n')
    assert imported_with_walks(archive, tmp_path).other_files == [f"{archive}/deep/w.jsonl"]
    with pytest.raises(InputError) as raised:
        imported(archive, tmp_path / "none")
    assert f"In {archive}/deep/w.jsonl" in str(raised.value)
    assert "graphcredit-" not in str(raised.value)


def imported_with_walks(archive: Path, folder: Path) -> ImportReport:
    write_lines(archive.parent / "walks.jsonl", *WALKS)
    return imported(archive.parent, folder / f"store-{archive.parent.name}")


def test_members_that_are_no_files_or_hide_another_are_named(tmp_path: Path):
    content = write_lines(tmp_path / "w.jsonl", *WALKS).read_bytes()
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
            info = tarfile.TarInfo("w.jsonl")
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
    packed(tmp_path / "b.zip", "inner.tar.gz", b"")
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as doubled:
        doubled.writestr("w.jsonl", content)
        with pytest.warns(UserWarning, match="Duplicate"):
            doubled.writestr("w.jsonl", content)
    reasons = {
        "a.tar": "7 members cannot be unpacked: 'w.jsonl' must be a file",
        "b.zip": "1 member cannot be unpacked: 'inner.tar.gz' must be unpacked before",
        "c.zip": "1 member cannot be unpacked: 'w.jsonl' is there several times",
    }
    report = imported(tmp_path, tmp_path / "store")
    named = {Path(bad.where).name: bad.reason for bad in report.bad_rows}
    assert named.keys() == reasons.keys()
    assert all(named[name].startswith(reason) for name, reason in reasons.items())
