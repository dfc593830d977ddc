"""Sampling by a vLLM server that the user has started: it stays, and its weights are replaced."""
