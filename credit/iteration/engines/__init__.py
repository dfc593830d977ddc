"""Engines, which compute the batches of an iteration."""
