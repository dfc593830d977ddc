"""The table of all sampling engines. A library is imported only when its engine is opened."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from graphcredit.collector.policies.engines.base import SamplingEngine
from graphcredit.store.errors import MissingDependencyError, OptionError
from graphcredit.store.extras import how_to_install


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineKind:
    """One row of the table."""

    open: Callable[[str], SamplingEngine]
    """Returns an engine without a model, given the URL of the server, if one samples."""
    library: str
    extra: str
    least_temperature: float = 0.0
    """The library raises temperatures between 0 and this one to this one."""
    is_served: bool = False
    """Whether a server samples, for all processes that play."""


def _open_transformers(_: str) -> SamplingEngine:
    from graphcredit.collector.policies.engines.transformers import TransformersEngine

    return TransformersEngine()


def _open_vllm(_: str) -> SamplingEngine:
    from graphcredit.collector.policies.engines.vllm import VllmEngine

    return VllmEngine()


def _open_vllm_server(url: str) -> SamplingEngine:
    from graphcredit.collector.policies.engines.vllm_server import VllmServerEngine

    return VllmServerEngine(url)


ENGINES: dict[str, EngineKind] = {
    "hf": EngineKind(open=_open_transformers, library="transformers", extra="train"),
    "vllm": EngineKind(open=_open_vllm, library="vllm", extra="vllm", least_temperature=0.01),
    # The server has vLLM; transformers reads the configuration.
    "vllm-server": EngineKind(
        open=_open_vllm_server,
        library="transformers",
        extra="train",
        least_temperature=0.01,
        is_served=True,
    ),
}


def require_engine(kind: str) -> None:
    """Raise MissingDependencyError if an engine's library is not installed."""
    row = ENGINES[kind]
    if find_spec(row.library) is None:
        raise MissingDependencyError(
            f"policies {kind}:PATH need the package {row.library!r}, which is not installed: "
            f"{how_to_install(row.extra)}"
        )


def require_temperature(kind: str, temperature: float) -> None:
    """Raise OptionError if an engine would sample at another temperature than this one."""
    least = ENGINES[kind].least_temperature
    if 0 < temperature < least:
        raise OptionError(
            f"temperature must be 0, or {least} or more, for policies {kind}:PATH, because "
            f"vLLM uses {least} for values in between: got {temperature}"
        )
