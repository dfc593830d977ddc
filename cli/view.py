"""`graphcredit view`: a store in the browser."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from graphcredit.store.errors import MissingDependencyError


def view(
    store: Annotated[Path, typer.Argument(help="The store.", show_default=False)],
    port: Annotated[int, typer.Option(min=1, max=65535, help="TCP port to listen on.")] = 8501,
    address: Annotated[
        str, typer.Option(help="Address to listen on; any but this machine's own warns.")
    ] = "127.0.0.1",
) -> None:
    """Show which steps got credit, and why, in a browser on this machine.

    The viewer only reads. It listens until Ctrl-C, and nothing it shows leaves this machine.

    Example: graphcredit view STORE --port 8600
    """
    from graphcredit.cli.console import PLAIN, talk
    from graphcredit.store.layout import open_store
    from graphcredit.viewer.config import LOOPBACK, STORE_VARIABLE, script, server_flags

    opened = open_store(store)
    if find_spec("streamlit") is None:
        raise MissingDependencyError(
            "the viewer needs the package 'streamlit', which is not installed: "
            "pip install 'graphcredit[view]'"
        )
    if address not in LOOPBACK:
        talk.print(
            f"Warning: whoever reaches {address}:{port} can read this store, without a password.",
            **PLAIN,
        )
    # -P: the folder that the user stands in is no place to import from.
    command = [sys.executable, "-P", "-m", "streamlit", "run", str(script())]
    flags = server_flags(address=address, port=port)
    environment = os.environ | {STORE_VARIABLE: str(opened.root.resolve())}
    os.execve(sys.executable, [*command, *flags], environment)
