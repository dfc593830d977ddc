"""What the pages ask of a store: SQL over its views, a table back; no browser needed."""
