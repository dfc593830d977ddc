"""State graphs and the distances to their goals."""
