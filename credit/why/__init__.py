"""What rollouts lost by: the decisions that mattered, and what recurs in failures."""
