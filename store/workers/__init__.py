"""Worker processes, which every stage shares: one protocol, one pool, one way to retry."""
