"""The rules of the format, and what breaks them."""
