"""A service with tools: orders, refunds, and a user who asks for changes."""
