"""The TextWorld environment: text games that can be generated from a seed."""
