"""`graphcredit view`: show a store in the browser."""

import os
import socket
import sys
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import click

from graphcredit.cli.options import AsJson, StorePath, given, takes
from graphcredit.cli.output.console import interruptible, print_json, progress, say, tell
from graphcredit.cli.parameters import Option
from graphcredit.store.errors import MissingDependencyError, OptionError
from graphcredit.store.extras import how_to_install
from graphcredit.store.layout import Store, open_store
from graphcredit.store.plural import counted
from graphcredit.viewer.bundle.options import BundleChoice
from graphcredit.viewer.config import LOOPBACK, STORE_VARIABLE, server, server_flags


@takes(
    {"What goes into a bundle": BundleChoice},
    names={"run_id": "--run", "estimator": "--estimator, -e", "tasks": "--task"},
)
def view(
    store: StorePath,
    port: Annotated[int, Option(min=1, max=65535, help="TCP port to listen on.")] = 8501,
    address: Annotated[
        str, Option(help="Address to listen on; other than loopback gives a warning.")
    ] = "127.0.0.1",
    bundle: Annotated[
        Path | None,
        Option(help="Write a static site to this folder and end; it opens without Python."),
    ] = None,
    as_json: AsJson = False,
    **flags: Any,
) -> None:
    """Show in a browser on this machine which steps got credit, and why.

    It changes nothing, and runs until Ctrl-C. No data leaves this machine. Example:

        graphcredit view STORE --port 8600

    With --bundle it writes the pages of a run as files instead, for people without Python. The
    folder appears when it is complete, and replaces only an earlier bundle. Example:

        graphcredit view STORE --bundle OUT --show "mixed outcomes"
    """
    opened = open_store(store)
    chosen = given(flags)
    if bundle is not None:
        _write(opened, bundle, BundleChoice(**chosen), as_json=as_json)
        return
    if chosen or as_json:
        raise click.UsageError(
            "choices of a run and its tasks, and --json, are for --bundle: name a folder"
        )
    _serve(opened, address, port)


def _serve(store: Store, address: str, port: int) -> None:
    """Become the process of the viewer."""
    for package in ("streamlit", "altair"):
        if find_spec(package) is None:
            raise MissingDependencyError(
                f"the viewer needs the package {package!r}, which is not installed: "
                f"{how_to_install('view')}"
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
    environment = os.environ | {STORE_VARIABLE: str(store.root.resolve())}
    os.execve(sys.executable, [*command, *flags], environment)


def _write(store: Store, target: Path, choice: BundleChoice, *, as_json: bool) -> None:
    """Write a bundle, and say what is in it."""
    # Only now: the viewer starts in a process of its own, without DuckDB in this one.
    from graphcredit.viewer.bundle.write import write_bundle

    with interruptible("no bundle was written"), progress("bundle") as on_progress:
        report = write_bundle(store, target, choice, on_progress)
    if as_json:
        print_json(asdict(report) | {"index": str(report.index)})
        return
    tasks = counted(report.num_tasks, "task")
    say(
        f"{counted(report.num_trajectories, 'rollout')} of {tasks}, "
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
