"""The recorder: it writes steps so that no acknowledged step is lost."""
