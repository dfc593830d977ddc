"""Flags and files to start the viewer's server: on loopback, offline, without telemetry."""

from importlib.util import find_spec
from pathlib import Path

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Addresses that other machines cannot reach."""

STORE_VARIABLE = "GRAPHCREDIT_STORE"
"""Environment variable that tells the viewer which store to show."""


def script() -> Path:
    """Return the path of the Streamlit script."""
    return _entry("script")


def server() -> Path:
    """Return the path of the server for `streamlit run`; the server runs the script."""
    return _entry("serve")


def _entry(name: str) -> Path:
    spec = find_spec(f"graphcredit.viewer.entry.{name}")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin)


def server_flags(*, address: str, port: int) -> list[str]:
    """Return the flags of `streamlit run`.

    We use flags because a user's configuration file would override one of ours.
    """
    options: dict[str, object] = {
        "server.address": address,
        "server.port": port,
        "server.headless": True,
        "server.showEmailPrompt": False,
        "server.fileWatcherType": "none",
        "server.enableStaticServing": False,
        "server.enableAgentApi": False,
        # Streamlit guesses this from its install path, and in development mode refuses a port.
        "global.developmentMode": False,
        "browser.gatherUsageStats": False,
        # Without it Streamlit asks a server on the internet for this machine's address.
        "browser.serverAddress": "localhost" if address in LOOPBACK else address,
        "client.toolbarMode": "minimal",
        # Links that would send an error's text to search engines.
        "client.showErrorLinks": False,
        # Streamlit mixes its quiet words from the colour of text: of others they are too faint.
        "theme.light.textColor": "#000000",
        "theme.dark.textColor": "#ffffff",
        "theme.paddingTop": "1rem",
        # The blue of credit: words in it, and white words on it, have a contrast of 4.5 to 1.
        "theme.light.primaryColor": "#1b5ea8",
        "theme.dark.primaryColor": "#2e78c7",
        "theme.dark.backgroundColor": "#000000",
        # Bare expressions and docstrings are no output.
        "runner.magicEnabled": False,
    }
    # Against DNS rebinding: refuse requests under other host names.
    hosts = LOOPBACK if address in LOOPBACK else ()
    return [
        *(f"--{name}={str(value).lower()}" for name, value in options.items()),
        *(f"--server.allowedHosts={host}" for host in hosts),
    ]
