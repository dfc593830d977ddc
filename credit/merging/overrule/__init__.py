"""What the rules of `states.toml` make of a text."""
