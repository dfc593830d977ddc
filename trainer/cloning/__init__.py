"""Behaviour cloning, and the tiny model that a warm-up starts from."""
