"""`graphcredit view` as a user types it."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from graphcredit.cli.main import app
from graphcredit.viewer.config import STORE_VARIABLE, server_flags
from tests.cli.test_credit import graphcredit
from tests.worlds import worked_example, write_store


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_it_serves_on_loopback(tmp_path: Path):
    store, port = write_store(tmp_path / "s", worked_example()), _free_port()
    command = [sys.executable, "-m", "graphcredit.cli.main", "view", str(store.root)]
    with subprocess.Popen([*command, "--port", str(port)], stderr=subprocess.DEVNULL) as server:
        try:
            assert _health(port, server) == b"ok"
            assert _listening(port) == {"0100007F"}
        finally:
            server.terminate()


def _listening(port: int) -> set[str]:
    """Return the addresses on which a port is listened to, in hexadecimal, bytes reversed."""
    found: set[str] = set()
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            address, state = line.split()[1], line.split()[3]
            if state == "0A" and address.endswith(f":{port:04X}"):
                found.add(address.partition(":")[0])
    return found


def _health(port: int, server: subprocess.Popen[bytes]) -> bytes:
    for _ in range(150):
        assert server.poll() is None
        try:
            url = f"http://127.0.0.1:{port}/_stcore/health"
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.read()
        except urllib.error.URLError:
            time.sleep(0.2)
    raise AssertionError("the server must answer within 30 s")


@pytest.mark.parametrize(("address", "warns"), [("127.0.0.1", False), ("0.0.0.0", True)])
def test_any_address_but_loopback_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, warns: bool
):
    started: list[tuple[list[str], dict[str, str]]] = []
    monkeypatch.setattr(os, "execve", lambda _, command, env: started.append((command, env)))
    store = write_store(tmp_path / "s", worked_example())
    result = CliRunner().invoke(app, ["view", str(store.root), "--address", address])
    assert result.exit_code == 0
    assert ("can read this store, without a password" in result.stderr) is warns
    ((command, environment),) = started
    assert f"--server.address={address}" in command
    assert environment[STORE_VARIABLE] == str(store.root.resolve())


def test_the_server_keeps_to_itself():
    flags = server_flags(address="127.0.0.1", port=8501)
    assert "--browser.gatherUsageStats=false" in flags
    assert "--client.showErrorLinks=false" in flags
    hosts = [flag for flag in flags if "allowedHosts" in flag]
    assert hosts == [f"--server.allowedHosts={host}" for host in ("127.0.0.1", "localhost", "::1")]
    assert not any("allowedHosts" in flag for flag in server_flags(address="10.0.0.1", port=1))


def test_what_is_no_store_is_refused(tmp_path: Path):
    result = graphcredit("view", str(tmp_path))
    assert result.returncode == 2
    assert "is not a store" in result.stderr
