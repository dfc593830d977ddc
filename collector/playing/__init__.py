"""Playing rollouts: episodes, worker processes, and what is left to play."""
