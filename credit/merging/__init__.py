"""Texts become states: rules, then a merge, both under the guard."""
