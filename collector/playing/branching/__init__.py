"""Trees of trajectories: sample several decisions at states that are not mastered yet."""
