"""The rules of `states.toml`, applied to texts."""
