"""Scripts that print tables of timings; see each one's docstring for how to run it."""
