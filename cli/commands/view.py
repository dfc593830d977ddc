"""`graphcredit view`: show a store in the browser."""

import os
import socket
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphcredit.cli.options import StorePath
from graphcredit.cli.output.console import interruptible, progress, say, tell
from graphcredit.store.errors import MissingDependencyError, OptionError
from graphcredit.store.layout import Store, open_store
from graphcredit.store.plural import counted
from graphcredit.viewer.config import (
    LOOPBACK,
    STORE_VARIABLE,
    TOKENIZER_VARIABLE,
    server,
    server_flags,
)

if TYPE_CHECKING:
    from graphcredit.viewer.bundle.choice import BundleChoice

_BUNDLE = "What goes into a bundle"


def view(
    store: StorePath,
    port: Annotated[int, typer.Option(min=1, max=65535, help="TCP port to listen on.")] = 8501,
    address: Annotated[
        str, typer.Option(help="Address to listen on; other than loopback gives a warning.")
    ] = "127.0.0.1",
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the tokenizer that decodes tokens.",
            show_default="that of the log's model, where this machine has it",
        ),
    ] = None,
    bundle: Annotated[
        Path | None,
        typer.Option(
            help="Write a static site to this folder and end; it opens without Python.",
            show_default=False,
        ),
    ] = None,
    run: Annotated[
        str | None, typer.Option(help="The run.", rich_help_panel=_BUNDLE, show_default="the last")
    ] = None,
    iteration: Annotated[
        int | None,
        typer.Option(help="Only this iteration.", rich_help_panel=_BUNDLE, show_default=False),
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option(
            "--estimator",
            "-e",
            help="Whose credit to draw and rank; every page has that of all.",
            rich_help_panel=_BUNDLE,
            show_default="the most telling",
        ),
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this task; may be repeated.", rich_help_panel=_BUNDLE, show_default=False
        ),
    ] = None,
    find: Annotated[
        str,
        typer.Option(help="Only tasks whose names contain this text.", rich_help_panel=_BUNDLE),
    ] = "",
    show: Annotated[
        str,
        typer.Option(
            help="Only such tasks: mixed outcomes, never solved, always solved, degenerate, or "
            "credit out of date.",
            rich_help_panel=_BUNDLE,
        ),
    ] = "all",
) -> None:
    """Show in a browser on this machine which steps got credit, and why.

    It changes nothing but notes, and runs until Ctrl-C. No data leaves this machine. Example:

        graphcredit view STORE --port 8600

    With --bundle it writes the pages of a run as files instead, for people without Python. The
    folder appears when it is complete, and replaces only an earlier bundle. Example:

        graphcredit view STORE --bundle OUT --show "mixed outcomes"
    """
    opened = open_store(store)
    chosen = (run, iteration, estimator, task, find or None, None if show == "all" else show)
    if bundle is not None:
        # Only now: the viewer starts in a process of its own, without DuckDB in this one.
        from graphcredit.viewer.bundle.choice import BundleChoice

        choice = BundleChoice(
            run_id=run,
            iteration=iteration,
            estimator=estimator,
            tasks=tuple(task or ()),
            find=find,
            show=show,
        )
        _write(opened, bundle, choice)
        return
    if any(value is not None for value in chosen):
        raise typer.BadParameter("choices of a run and its tasks are for --bundle: name a folder")
    for package in ("streamlit", "altair"):
        if find_spec(package) is None:
            raise MissingDependencyError(
                f"the viewer needs the package {package!r}, which is not installed: "
                "pip install 'graphcredit[view]'"
            )
    _check_address(address, port)
    if address not in LOOPBACK:
        tell(
            f"Warning: anyone who can reach {address}:{port} can read this store without a "
            "password."
        )
    # -P: a module in the user's working directory must not shadow ours.
    command = [sys.executable, "-P", "-m", "streamlit", "run", str(server())]
    flags = server_flags(address=address, port=port)
    environment = os.environ | {STORE_VARIABLE: str(opened.root.resolve())}
    if tokenizer is not None:
        environment[TOKENIZER_VARIABLE] = str(_tokenizer(tokenizer))
    os.execve(sys.executable, [*command, *flags], environment)


def _tokenizer(folder: Path) -> Path:
    """Return the absolute path of a folder with a tokenizer."""
    if not (folder / "tokenizer.json").is_file():
        raise OptionError(
            f"--tokenizer must be a folder with a tokenizer.json: {folder} has none. The folder of "
            "a model has one, as transformers saves it"
        )
    return folder.resolve()


def _write(store: Store, target: Path, choice: "BundleChoice") -> None:
    """Write a bundle, and say what is in it."""
    from graphcredit.viewer.bundle.write import write_bundle

    with interruptible("no bundle was written"), progress("bundle") as on_progress:
        report = write_bundle(store, target, choice, on_progress)
    tasks = counted(report.num_tasks, "task")
    say(
        f"{counted(report.num_trajectories, 'trajectory')} of {tasks}, "
        f"{report.num_bytes / 1e6:.1f} MB: open {report.index}"
    )


def _check_address(address: str, port: int) -> None:
    """Raise OptionError if the address cannot be bound: Streamlit would show a traceback."""
    try:
        ((family, kind, protocol, _, where), *_) = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM
        )
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OptionError(
            f"the viewer cannot listen on {address}:{port}: {reason}. "
            "Choose another with --port or --address"
        ) from error
