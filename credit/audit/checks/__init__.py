"""The checks of the audit, one file for each question."""
