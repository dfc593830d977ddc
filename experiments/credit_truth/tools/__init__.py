"""The service with tools in the exact yardstick: what rules for states are worth on its logs."""
