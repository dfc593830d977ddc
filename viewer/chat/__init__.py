"""A trajectory as a conversation, drawn by a component of our own."""
