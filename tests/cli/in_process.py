"""The command line without a process of its own."""

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest.mock import patch

from graphcredit.cli.main import main


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """How a command ended, and what it wrote."""

    exit_code: int
    out: str
    err: str


def run(*arguments: object) -> Ended:
    """Run a command as a pipe sees it; an exception that it does not expect goes through."""
    out, err = io.StringIO(), io.StringIO()
    argv = ["graphcredit", *map(str, arguments)]
    with patch.object(sys, "argv", argv), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
            exit_code = 0
        except SystemExit as ended:
            exit_code = int(ended.code or 0)
    return Ended(exit_code=exit_code, out=out.getvalue(), err=err.getvalue())


def completed(*arguments: object) -> "subprocess.CompletedProcess[str]":
    """Run a command; return what `subprocess.run` would of its own process."""
    ended = run(*arguments)
    return subprocess.CompletedProcess(arguments, ended.exit_code, ended.out, ended.err)
