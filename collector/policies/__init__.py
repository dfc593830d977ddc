"""The policies that choose actions."""
