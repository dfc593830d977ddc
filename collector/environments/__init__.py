"""The environments that rollouts are played in."""
