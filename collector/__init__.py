"""Steps into shards: recorder, importers of logs, environments, policies, rollouts.

`collect` and `import_log` are imported when they are first used.
"""

from typing import TYPE_CHECKING, Any

from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.options import CollectOptions
from graphcredit.collector.recording.recorder import StepRecorder
from graphcredit.collector.recording.trajectory import Trajectory

if TYPE_CHECKING:
    from graphcredit.collector.collection import collect
    from graphcredit.collector.importers.run import import_log

__all__ = [
    "CollectOptions",
    "ImportOptions",
    "StepRecorder",
    "Trajectory",
    "collect",
    "import_log",
]


def __getattr__(name: str) -> Any:
    if name == "collect":
        from graphcredit.collector.collection import collect

        return collect
    if name == "import_log":
        from graphcredit.collector.importers.run import import_log

        return import_log
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
