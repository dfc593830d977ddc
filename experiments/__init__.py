"""Experiments: what the estimators come to on a real environment."""
