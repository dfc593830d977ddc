"""A run as a static site, which needs no Python, no server and no network."""
