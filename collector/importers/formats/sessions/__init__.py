"""Sessions of coding agents: files whose lines are the events of one conversation."""
