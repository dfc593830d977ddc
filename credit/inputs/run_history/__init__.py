"""A run's past: all that happened before a trajectory ended."""
