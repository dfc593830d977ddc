"""`graphcredit view` as a user types it."""

import http.client
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from graphcredit.cli.main import app
from graphcredit.viewer.config import STORE_VARIABLE, server_flags
from tests.cli.in_process import run
from tests.worlds import worked_example, write_store


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Serve a store with `graphcredit view`; return the port."""
    store = write_store(tmp_path_factory.mktemp("view") / "s", worked_example())
    port = _free_port()
    command = [sys.executable, "-m", "graphcredit.cli.main", "view", str(store.root)]
    with subprocess.Popen([*command, "--port", str(port)], stderr=subprocess.DEVNULL) as server:
        try:
            assert _health(port, server) == b"ok"
            yield port
        finally:
            server.terminate()


def test_it_serves_on_loopback(port: int):
    assert _listening(port) == {"0100007F"}


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost:{port}", "http://localhost:{port}", 101),
        ("127.0.0.1:{port}", "http://127.0.0.1:{port}", 101),
        ("[::1]:{port}", "http://[::1]:{port}", 101),
        # As the browser says it where `ssh -L 9000:localhost:8501` forwards a port.
        ("localhost:9000", "http://localhost:9000", 101),
        # What is no browser.
        ("localhost:{port}", None, 101),
        ("localhost:{port}", "http://localhost:3000", 403),
        ("localhost:{port}", "http://localhost", 403),
        ("localhost:{port}", "http://127.0.0.1:{port}", 403),
        ("localhost:{port}", "https://localhost:{port}", 403),
        ("localhost:{port}", "https://example.org", 403),
        ("localhost:{port}", "null", 403),
        # A name of another site that resolves to this machine.
        ("example.org:{port}", "http://example.org:{port}", 403),
    ],
)
def test_only_its_own_pages_open_its_socket(port: int, host: str, origin: str | None, status: int):
    headers = {
        "Host": host.format(port=port),
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }
    if origin is not None:
        headers["Origin"] = origin.format(port=port)
    assert _get(port, "/_stcore/stream", headers).status == status


def test_a_page_of_another_origin_gets_nothing_and_frames_nothing(port: int):
    host = f"localhost:{port}"
    for path in ("/", "/tasks", "/_stcore/health"):
        own = _get(port, path, {"Host": host, "Origin": f"http://{host}"})
        other = _get(port, path, {"Host": host, "Origin": "http://localhost:3000"})
        assert (own.status, other.status) == (200, 403)
        for answer in (own, other):
            assert answer.getheader("Content-Security-Policy") == "frame-ancestors 'none'"
            assert answer.getheader("X-Frame-Options") == "DENY"


def _get(port: int, path: str, headers: dict[str, str]) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path, headers=headers)
        return connection.getresponse()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("address", "reason"),
    [("127.0.0.1", "Address already in use"), ("203.0.113.7", "Cannot assign requested address")],
)
def test_where_it_cannot_listen_it_says_why_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, reason: str
):
    monkeypatch.setattr(os, "execve", lambda *_: pytest.fail("the server was started"))
    store = write_store(tmp_path / "s", worked_example())
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = run("view", store.root, "--port", port, "--address", address)
    assert ended.exit_code == 2
    assert ended.err.startswith(f"graphcredit: the viewer cannot listen on {address}:{port}: ")
    assert reason in ended.err
    assert ended.err.count("\n") == 1


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
    for _ in range(900):
        assert server.poll() is None
        try:
            url = f"http://127.0.0.1:{port}/_stcore/health"
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.read()
        except urllib.error.URLError:
            time.sleep(0.2)
    raise AssertionError("the server must answer within three minutes")


@pytest.mark.parametrize(("address", "warns"), [("127.0.0.1", False), ("0.0.0.0", True)])
def test_any_address_but_loopback_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, warns: bool
):
    started: list[tuple[list[str], dict[str, str]]] = []
    monkeypatch.setattr(os, "execve", lambda _, command, env: started.append((command, env)))
    store = write_store(tmp_path / "s", worked_example())
    result = CliRunner().invoke(
        app, ["view", str(store.root), "--address", address, "--port", str(_free_port())]
    )
    assert result.exit_code == 0
    assert ("can read this store without a password" in result.stderr) is warns
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


def test_a_bundle_is_written_and_its_first_page_named(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    found = run("view", str(store.root), "--bundle", str(tmp_path / "b"), "--find", "t0")
    assert found.exit_code == 0
    words = "3 rollouts of 1 task, "
    assert found.out.startswith(words)
    assert found.out.strip().endswith(f"open {tmp_path / 'b' / 'index.html'}")
    assert (tmp_path / "b" / "index.html").is_file()
    told = json.loads(run("view", store.root, "--bundle", tmp_path / "b", "--json").out)
    assert (told["num_trajectories"], told["index"]) == (3, str(tmp_path / "b" / "index.html"))


def test_choices_of_a_bundle_need_one(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    for flags in (["--find", "t0"], ["--show", "never solved"], ["--task", "t0"]):
        found = run("view", str(store.root), *flags)
        assert found.exit_code == 2
        assert "for --bundle" in " ".join(found.err.split())
