"""Kinds of noise in texts of states: those of the design, and those that judge it."""
