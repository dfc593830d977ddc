"""Search tasks: questions about countries, answered from pages."""
