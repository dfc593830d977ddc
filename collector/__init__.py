"""Steps into shards: recorder, importers of logs, environments, policies, rollouts.

Each is imported when it is first used: workers that read logs start without the others.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphcredit.collector.collection import collect
    from graphcredit.collector.importers.options import ImportOptions
    from graphcredit.collector.importers.run import import_log
    from graphcredit.collector.options import CollectOptions
    from graphcredit.collector.recording.recorder import StepRecorder
    from graphcredit.collector.recording.trajectory import Trajectory

__all__ = ["CollectOptions", "ImportOptions", "StepRecorder", "Trajectory", "collect", "import_log"]

_MODULES = {
    "CollectOptions": "options",
    "ImportOptions": "importers.options",
    "StepRecorder": "recording.recorder",
    "Trajectory": "recording.trajectory",
    "collect": "collection",
    "import_log": "importers.run",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
