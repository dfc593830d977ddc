"""Sampling engines: libraries that run a language model."""
