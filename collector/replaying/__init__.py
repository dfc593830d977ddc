"""Executed replay: play on from logged decisions, to measure what each of them was worth."""
