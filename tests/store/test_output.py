"""A result goes where the user wants it: into pipes and devices, and through links."""

import os
import stat
from pathlib import Path

import pytest

from graphcredit.store.errors import InputError
from graphcredit.store.files.output import output_path


def _write(path: Path, text: str = "result\n") -> None:
    with output_path(path) as temporary:
        temporary.write_text(text)


def test_a_new_file_appears_whole_or_not_at_all(tmp_path: Path):
    path = tmp_path / "new" / "a.csv"
    with pytest.raises(TypeError):
        _write(path, 1)  # pyright: ignore[reportArgumentType]
    assert list((tmp_path / "new").iterdir()) == []
    _write(path)
    assert path.read_text() == "result\n"


def test_a_regular_file_is_replaced_and_keeps_its_mode(tmp_path: Path):
    path = tmp_path / "a.csv"
    path.write_text("before")
    path.chmod(0o600)
    _write(path)
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("result\n", 0o600)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path, is_there: bool):
    behind, middle, link = tmp_path / "disk" / "a.csv", tmp_path / "m", tmp_path / "l"
    behind.parent.mkdir()
    if is_there:
        behind.write_text("before")
    middle.symlink_to("disk/a.csv")
    link.symlink_to(middle)
    _write(link)
    assert (link.is_symlink(), middle.is_symlink()) == (True, True)
    assert behind.read_text() == "result\n"
    assert not behind.is_symlink()
    assert list(tmp_path.rglob("*.tmp")) == []


@pytest.mark.parametrize("is_linked", [True, False])
def test_a_pipe_is_written_to(tmp_path: Path, is_linked: bool):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    _write(link if is_linked else pipe)
    assert os.read(reader, 100) == b"result\n"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert link.is_symlink()


def test_a_device_is_written_to():
    main, terminal = os.openpty()
    name = Path(os.ttyname(terminal))
    _write(name, "result")
    assert os.read(main, 100) == b"result"
    assert stat.S_ISCHR(name.stat().st_mode)
    os.close(main)
    os.close(terminal)


def test_a_file_that_is_open_already_is_gone_on_with(tmp_path: Path):
    """Like `/dev/stdout` of `{ echo before; graphcredit sql …; echo after; } > FILE`."""
    file = os.open(tmp_path / "a.txt", os.O_WRONLY | os.O_CREAT)
    os.write(file, b"before\n")
    (tmp_path / "stdout").symlink_to(f"/dev/fd/{file}")
    _write(tmp_path / "stdout")
    os.write(file, b"after\n")
    os.close(file)
    assert (tmp_path / "a.txt").read_text() == "before\nresult\nafter\n"


def test_a_folder_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match=r"the output must be a file: .* is a directory"):
        _write(tmp_path)


def test_links_that_lead_in_a_circle_stay_as_they_are(tmp_path: Path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        _write(tmp_path / "a")
    assert (tmp_path / "a").is_symlink()
