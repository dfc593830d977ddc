"""Environments that rollouts play; one file each."""
