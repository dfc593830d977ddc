"""Search tasks: questions about countries, to be answered by reading pages."""
