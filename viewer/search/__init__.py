"""The entities of a search task."""
