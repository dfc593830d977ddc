"""What a record says: its values, its messages, and the rollout that they are."""
