"""States of agents that use tools: by what was done and learned, not by the last words."""
