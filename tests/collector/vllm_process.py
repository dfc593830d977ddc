"""A real vLLM server on 127.0.0.1, started as docs/policies.md says."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

_START_SECONDS = 180
_ENVIRONMENT = {
    "VLLM_SERVER_DEV_MODE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "TORCHDYNAMO_DISABLE": "1",
    "HF_HUB_OFFLINE": "1",
}
_OPTIONS = "--enable-scale-out --logprobs-mode processed_logprobs --load-format safetensors"


@contextmanager
def vllm_server(model: str, log: Path, *options: str) -> Iterator[str]:
    """Start a server with a model, yield its URL, and end it.

    Args:
        model: Directory of the model.
        log: File for what the server prints.
        options: More options of the server.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    module = "vllm.entrypoints.openai.api_server"
    where = ["--model", model, "--host", "127.0.0.1", "--port", str(port)]
    command = [sys.executable, "-m", module, *where, *_OPTIONS.split(), "--enforce-eager"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--dtype", "float32", *options],
            stdout=output,
            stderr=output,
            env={**os.environ, **_ENVIRONMENT},
            start_new_session=True,
        )
    try:
        _wait(process, port, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    """Wait until a server answers."""
    end = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        connection = HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        except OSError:
            time.sleep(1)
        finally:
            connection.close()
    raise AssertionError(f"vLLM did not start: {log.read_text(errors='replace')[-3000:]}")
