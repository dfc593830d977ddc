"""A confined process as its parent sees it: bytes go in and out, and nothing of them is run."""

import os
import subprocess
import sys
import tempfile
from signal import SIGPROF
from typing import IO

from graphcredit.store.confined.limits import MIB, TOO_LARGE

_LAST_BYTES = 1 << 16
"""Most bytes of the child's errors that are read, from the end."""

_ENVIRONMENT = {"ARROW_DEFAULT_MEMORY_POOL": "system"}
"""Environment of the child. pyarrow's default allocator reserves a gigabyte of address space, which
would count against the memory limit."""


class ConfinedProcess:
    """A child process, which sets its limits itself (`limits.py`) and ends when `stdin` does.

    As a context manager it closes the pipes, and waits for the end.
    """

    def __init__(self, module: str) -> None:
        """Start a module of this package, without waiting until it runs."""
        # A pipe for errors would fill up while answers are read, and stop the child.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `__exit__`
        pipe, environment = subprocess.PIPE, os.environ | _ENVIRONMENT
        # -P: a module in the user's working directory must not shadow ours.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module],
            stdin=pipe,
            stdout=pipe,
            stderr=self._errors,
            env=environment,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.stdin: IO[bytes] = self._process.stdin
        self.stdout: IO[bytes] = self._process.stdout

    def __enter__(self) -> "ConfinedProcess":
        return self

    def __exit__(self, *raised: object) -> None:
        try:
            self._process.__exit__(None, None, None)
        finally:
            self._errors.close()

    @property
    def lives(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    def kill(self) -> None:
        """End it, whatever it does."""
        self._process.kill()

    def wait(self) -> int:
        """Wait for its end, and return its exit code: below 0 the signal that killed it."""
        return self._process.wait()

    def why_ended(self, seconds: float, memory: int) -> str:
        """Return which limit it broke, as the end of a sentence; wait for its end first."""
        code, limit = self.wait(), f"{memory // MIB} MiB of memory"
        if code == -SIGPROF:
            return f"was stopped: it must finish within {seconds:g} s"
        if code == TOO_LARGE:
            return f"needs more than {limit}"
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - _LAST_BYTES))
        last = self._errors.read().decode(errors="replace").strip().rpartition("\n")[2]
        status = f"status {code}{': ' + last if last else ''}"
        # A library whose allocation fails may abort or crash, instead of reporting it.
        return f"ended its process ({status}), most likely because it needs more than {limit}"
