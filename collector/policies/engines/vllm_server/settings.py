"""How a server must have been started, so that it can sample for us."""

from graphcredit.collector.policies.engines.vllm_server.server import ServerSettings, VllmServer
from graphcredit.store.errors import EngineError

_LOGPROBS_MODE = "processed_logprobs"


def require_settings(server: VllmServer, dtype: str) -> ServerSettings:
    """Return how a server was started, if it can sample for us.

    Args:
        server: The server.
        dtype: Number type of the arithmetic: float32, bfloat16.

    Raises:
        EngineError: The server does not answer, or was started with other options.
    """
    found = server.settings()
    if found.logprobs_mode != _LOGPROBS_MODE:
        raise EngineError(
            "a vLLM server must return the log-probabilities at the temperature: that at "
            f"{server.url} returns {found.logprobs_mode}. Start it again with --logprobs-mode "
            f"{_LOGPROBS_MODE}"
        )
    computes_in = found.dtype.removeprefix("torch.")
    if computes_in != dtype:
        raise EngineError(
            f"a vLLM server must compute in the dtype of the collection, {dtype}: that at "
            f"{server.url} computes in {computes_in}. Start it again with --dtype {dtype}, or set "
            f"dtype to {computes_in}"
        )
    return found
