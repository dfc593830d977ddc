"""The `graphcredit` command line: registers the commands and turns errors into messages."""

import errno
import os
import signal
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import click

from graphcredit.cli.parameters import HELP_NAMES
from graphcredit.cli.table import CommandTable
from graphcredit.store.errors import (
    DamagedFileError,
    ExtensionWarning,
    GraphcreditError,
    InputError,
    MissingDependencyError,
    OptionError,
    interrupts,
    missing_extras,
    system_errors,
)
from graphcredit.store.log_text import in_terminal

app = click.version_option(package_name="graphcredit", message="graphcredit %(version)s")(
    CommandTable(
        "graphcredit",
        help="Which steps of an agent's rollouts deserve the credit?",
        no_args_is_help=True,
        context_settings=HELP_NAMES,
    )
)


def main() -> None:
    """Run the command line; print a `GraphcreditError` as one message, without a traceback.

    The exit code is 2 for wrong use. It is 1 if a file is damaged, or if the same command can
    succeed later; 130 after Ctrl-C, and 143 after SIGTERM, which ends a command as that does.
    """
    with _ended_by_sigterm():
        _main()


@contextmanager
def _ended_by_sigterm() -> Generator[None]:
    """Raise KeyboardInterrupt at SIGTERM, so that all is closed; whatever follows, exit by 143."""
    is_received = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal is_received
        is_received = True
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # one is enough: let it end in order
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        if is_received:
            raise SystemExit(128 + signal.SIGTERM)


def _main() -> None:
    try:
        with interrupts(), system_errors(), missing_extras(), _flushed():
            _refuse_undecodable(sys.argv)
            warnings.showwarning = _show_warning
            app()
    except KeyboardInterrupt:
        sys.stderr.write("graphcredit: interrupted\n")
        raise SystemExit(128 + signal.SIGINT) from None
    except GraphcreditError as error:
        # A line of a log in it is no line of ours: only the first one begins at the margin.
        message = in_terminal(str(error), keep="\n").replace("\n", "\n  ")
        sys.stderr.write(f"graphcredit: {message}\n")
        is_wrong_use = isinstance(error, InputError | MissingDependencyError) and not isinstance(
            error, DamagedFileError
        )
        raise SystemExit(2 if is_wrong_use else 1) from error


_SHOW_WARNING = warnings.showwarning


def _show_warning(message: Warning | str, category: type[Warning], *rest: Any) -> None:
    """Print a warning of our own as a notice, without the line of code that it came from."""
    if issubclass(category, ExtensionWarning):
        sys.stderr.write(f"notice: {in_terminal(str(message))}\n")
    else:
        _SHOW_WARNING(message, category, *rest)


def _refuse_undecodable(arguments: list[str]) -> None:
    """Raise OptionError for an argument that is not UTF-8, for example a path in Latin-1."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise OptionError(
                f"arguments must be UTF-8: found {os.fsencode(argument)!r}. Rename the file, or "
                "reach it by another path"
            ) from None


@contextmanager
def _flushed() -> Generator[None]:
    """Flush stdout before the interpreter exits, while an error can still be reported."""
    try:
        yield
    finally:
        try:
            sys.stdout.flush()
        except OSError as error:
            # Python flushes stdout again at exit, which would fail again: redirect it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if error.errno == errno.EPIPE:
                raise SystemExit(1) from None
            error.filename = "standard output"
            raise


if __name__ == "__main__":
    main()
