"""A lock is held by the process that took it, and by no fork of it."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from graphcredit.store.errors import InputError
from graphcredit.store.files.lock import LockFile, alone_in, held


@contextmanager
def fork_that_waits() -> Generator[None]:
    """Fork this process; the fork is at work until the block ends."""
    (started, tell_started), (over, tell_over) = os.pipe(), os.pipe()
    process = os.fork()
    if not process:
        os.close(tell_over)
        os.write(tell_started, b"x")
        os.read(over, 1)  # ends with this process, whatever happens to it
        os._exit(0)
    os.read(started, 1)
    yield
    os.close(tell_over)
    os.waitpid(process, 0)


def test_a_fork_does_not_keep_the_lock_of_its_parent(tmp_path: Path):
    lock = LockFile(tmp_path / "lock")
    assert lock.lock()
    with fork_that_waits(), LockFile(tmp_path / "lock") as another:
        assert not another.lock()
        lock.close()
        assert another.lock()


def test_what_a_fork_does_with_its_copy_of_a_lock_leaves_the_parents_alone(tmp_path: Path):
    lock = LockFile(tmp_path / "lock")
    assert lock.lock()

    process = os.fork()
    if not process:
        lock.close()
        os._exit(LockFile(tmp_path / "lock").lock())
    assert os.waitpid(process, 0)[1] == 0
    with LockFile(tmp_path / "lock") as another:
        assert not another.lock()
    lock.close()


def test_a_refusal_names_the_process_that_has_the_lock(tmp_path: Path):
    refusal = r"one at a time\. .*/\.lock is locked by this process"
    with (
        alone_in(tmp_path, "one at a time"),
        pytest.raises(InputError, match=refusal),
        alone_in(tmp_path, "one at a time"),
    ):
        pass
    assert "another user, container or machine" in held(tmp_path / ".lock")
