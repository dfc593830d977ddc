"""Recording steps so that no acknowledged step is lost."""
