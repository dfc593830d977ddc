"""Folders for temporary files: private, gone at the end, and after a kill at the next run."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from graphcredit.store.files.scratch import ScratchFolder

HOLDS = (
    "from graphcredit.store.files.scratch import ScratchFolder\n"
    "folder = ScratchFolder()\n"
    "(folder.path / 'log').write_text('private')\n"
    "print(folder.path, flush=True)\n"
)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_it_is_private_and_goes_with_its_block(temporary: Path):
    with ScratchFolder() as path:
        (path / "a").mkdir()
        assert (path.stat().st_mode & 0o777, path.parent) == (0o700, temporary)
    assert not list(temporary.iterdir())


def test_what_a_kill_left_goes_with_the_next_run_and_what_is_in_use_stays(temporary: Path):
    others = [temporary / "graphcredit-file", temporary / "other"]
    others[0].write_text("a file")
    others[1].mkdir()
    (temporary / "graphcredit-link").symlink_to(others[1])
    alive = subprocess.Popen(
        [sys.executable, "-c", HOLDS + "input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    killing = f"{HOLDS}import os\nos.kill(os.getpid(), {signal.SIGKILL})"
    with alive:
        assert alive.stdout is not None
        held = Path(alive.stdout.readline().strip())
        killed = subprocess.run(
            [sys.executable, "-c", killing], capture_output=True, text=True, check=False
        )
        left = Path(killed.stdout.strip())
        assert (left / "log").exists()
        with ScratchFolder():
            assert not left.exists()
            assert (held / "log").read_text() == "private"
        alive.communicate("\n")
    assert not held.exists()
    assert sorted(temporary.iterdir()) == sorted([*others, temporary / "graphcredit-link"])


def test_a_fork_leaves_the_folder_of_its_parent():
    folder = ScratchFolder()
    child = os.fork()
    if not child:
        try:
            folder.remove()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert folder.path.exists()
    folder.remove()
    assert not folder.path.exists()
