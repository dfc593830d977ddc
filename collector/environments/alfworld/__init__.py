"""ALFWorld: the published household games, played by TextWorld and its planner."""
