"""Which steps go into which optimizer step and micro-batch."""
