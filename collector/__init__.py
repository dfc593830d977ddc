"""From environments to step shards: recorder, environments, policies, rollout.

`collect` is imported when it is first used.
"""

from typing import TYPE_CHECKING, Any

from graphcredit.collector.options import CollectOptions
from graphcredit.collector.recording.recorder import StepRecorder
from graphcredit.collector.recording.trajectory import Trajectory

if TYPE_CHECKING:
    from graphcredit.collector.collection import collect

__all__ = ["CollectOptions", "StepRecorder", "Trajectory", "collect"]


def __getattr__(name: str) -> Any:
    if name == "collect":
        from graphcredit.collector.collection import collect

        return collect
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
