"""Outcomes of untried actions, judged by similar states."""
