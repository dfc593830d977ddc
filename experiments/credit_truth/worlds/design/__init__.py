"""Worlds that estimators may be designed on. None of them is among those that judge."""
