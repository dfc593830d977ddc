"""Which texts of the records became part of a step, and which no reader read."""
