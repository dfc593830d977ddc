"""The merge by segments: the parts of a text that recur with a state."""
