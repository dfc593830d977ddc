"""Trees of trajectories: several decisions where a state is unresolved."""
