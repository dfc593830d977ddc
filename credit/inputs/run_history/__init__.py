"""What had happened in a run before a trajectory ended."""
