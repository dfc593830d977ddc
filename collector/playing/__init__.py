"""Play rollouts: episodes, worker processes, schedules, and resuming a collection."""
