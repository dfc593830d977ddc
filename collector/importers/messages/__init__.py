"""Records to messages: the dialects of messages, and the rollout that some messages are."""
