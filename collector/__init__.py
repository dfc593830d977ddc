"""From environments to step shards: recorder, environments, policies, rollout."""

from graphcredit.collector.recorder import StepRecorder
from graphcredit.collector.trajectory import Trajectory

__all__ = ["StepRecorder", "Trajectory"]
