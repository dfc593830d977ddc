"""Readers of foreign logs: each file turns the records of one format into rollouts."""
