"""`graphcredit view`: show a store in the browser."""

import os
import socket
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from graphcredit.store.errors import MissingDependencyError, OptionError


def view(
    store: Annotated[Path, typer.Argument(help="The store.", show_default=False)],
    port: Annotated[int, typer.Option(min=1, max=65535, help="TCP port to listen on.")] = 8501,
    address: Annotated[
        str, typer.Option(help="Address to listen on; other than loopback gives a warning.")
    ] = "127.0.0.1",
) -> None:
    """Show in a browser on this machine which steps got credit, and why.

    The viewer only reads. It runs until Ctrl-C. No data leaves this machine.

    Example: graphcredit view STORE --port 8600
    """
    from graphcredit.cli.output.console import PLAIN, talk
    from graphcredit.store.layout import open_store
    from graphcredit.viewer.config import LOOPBACK, STORE_VARIABLE, server, server_flags

    opened = open_store(store)
    for package in ("streamlit", "altair"):
        if find_spec(package) is None:
            raise MissingDependencyError(
                f"the viewer needs the package {package!r}, which is not installed: "
                "pip install 'graphcredit[view]'"
            )
    _check_address(address, port)
    if address not in LOOPBACK:
        talk.print(
            f"Warning: anyone who can reach {address}:{port} can read this store without a "
            "password.",
            **PLAIN,
        )
    # -P: a module in the user's working directory must not shadow ours.
    command = [sys.executable, "-P", "-m", "streamlit", "run", str(server())]
    flags = server_flags(address=address, port=port)
    environment = os.environ | {STORE_VARIABLE: str(opened.root.resolve())}
    os.execve(sys.executable, [*command, *flags], environment)


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
