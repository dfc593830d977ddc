"""Play rollouts and record their steps: recorder, environments, policies, rollouts."""

from graphcredit.collector.recording.recorder import StepRecorder
from graphcredit.collector.recording.trajectory import Trajectory

__all__ = ["StepRecorder", "Trajectory"]
