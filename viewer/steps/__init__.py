"""The steps of a trajectory: numbers, charts, explanations and HTML export."""
