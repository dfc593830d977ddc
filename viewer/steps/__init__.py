"""A trajectory's steps: facts, charts, exports."""
