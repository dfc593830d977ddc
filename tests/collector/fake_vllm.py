"""A small server that answers like vLLM's, on 127.0.0.1; transformers samples for it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from graphcredit.collector.policies.engines.base import Request, Sampling
from graphcredit.collector.policies.engines.transformers import TransformersEngine


@dataclass(kw_only=True)
class FakeVllm:
    """The state of a server, and what goes wrong with it."""

    model: str
    """Directory of the model that it was started with."""
    logprobs_mode: str = "processed_logprobs"
    dtype: str = "torch.float32"
    keeps_weights: bool = False
    """Whether it says that it has loaded weights, and has not."""
    is_busy: bool = False
    """Whether it cannot empty its cache of prefixes."""
    num_dropped: int = 0
    """How many of the next connections it closes without an answer."""
    statuses: dict[str, int] = field(default_factory=dict[str, int])
    """Path to the status of an error that it answers."""
    answers: dict[str, Any] = field(default_factory=dict[str, Any])
    """Path to what it answers instead."""
    label: str = "default"
    url: str = ""
    asked: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    """The path and the body of each request."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    engine: TransformersEngine = field(default_factory=TransformersEngine)

    def __post_init__(self) -> None:
        self.start_again()

    def start_again(self) -> None:
        """Be as a server that was ended and started by the same command."""
        self.label = "default"
        self.engine.load(self.model, "float32")

    def loaded(self) -> list[str]:
        """Return the directories that it was told to load."""
        bodies = [body for path, body in self.asked if path == "/collective_rpc"]
        assert all(body["method"] == "reload_weights" for body in bodies)
        return [body["kwargs"]["weights_path"] for body in bodies]

    def answer(self, path: str, body: Any) -> Any:
        """Return the answer to a request."""
        match path:
            case "/server_info":
                found = {"dtype": self.dtype, "logprobs_mode": self.logprobs_mode}
                return {"vllm_config": {"model_config": {**found, "max_model_len": 2048}}}
            case "/weight_info":
                return {"weight_version": self.label}
            case "/update_weight_version":
                self.label = body["new_version"]
                return {"success": True, "new_version": self.label}
            case "/collective_rpc":
                if not self.keeps_weights:
                    self.engine.load(body["kwargs"]["weights_path"], "float32")
                return {"results": [None]}
            case "/reset_prefix_cache":
                return {"success": not self.is_busy}
            case "/inference/v1/generate":
                return self._sampled(body)
            case _:
                raise AssertionError(path)

    def _sampled(self, body: Any) -> Any:
        asked = body["sampling_params"]
        assert (asked["logprobs"], asked["ignore_eos"]) == (0, True)
        self.engine.end_ids = frozenset(asked["stop_token_ids"])
        request = Request(prompt_ids=tuple(body["token_ids"]), seed=asked["seed"])
        sampling = Sampling(temperature=asked["temperature"], max_new_tokens=asked["max_tokens"])
        (response,) = self.engine.generate([request], sampling)
        tokens = zip(response.token_ids, response.logprobs, strict=True)
        content = [{"token_id": token, "logprob": logprob} for token, logprob in tokens]
        spans = [{"version": self.label, "start": 0, "end": len(content)}]
        choice = {"token_ids": response.token_ids, "weight_versions": spans, "index": 0}
        return {"choices": [{**choice, "logprobs": {"content": content}}]}


@contextmanager
def serving(fake: FakeVllm) -> Iterator[FakeVllm]:
    """Let a server listen on a free port; its `url` says on which."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, body: Any) -> None:
            path = self.path.partition("?")[0]
            with fake.lock:
                if fake.num_dropped:
                    fake.num_dropped -= 1
                    return
                fake.asked.append((path, body))
                status = fake.statuses.get(path, 200)
                found: Any = {"error": {"message": "it is broken"}}
                if status == 200:
                    found = fake.answers[path] if path in fake.answers else fake.answer(path, body)
            text = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        fake.url = f"http://127.0.0.1:{server.server_port}"
        yield fake
        server.shutdown()
        thread.join()
