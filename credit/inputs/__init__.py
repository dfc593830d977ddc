"""Inputs that only some estimators read, one folder each."""
