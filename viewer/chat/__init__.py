"""A trajectory as a conversation, and the tokens of a step; drawn by components of our own."""
