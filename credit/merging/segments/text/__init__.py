"""Texts as segments of tokens."""
