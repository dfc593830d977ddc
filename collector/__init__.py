"""From environments to step shards: recorder, environments, policies, rollout."""

from graphcredit.collector.recording.recorder import StepRecorder
from graphcredit.collector.recording.trajectory import Trajectory

__all__ = ["StepRecorder", "Trajectory"]
