"""TextWorld games."""
