"""Calls of a model, joined to conversations: logs of calls, and what traces have of them."""
