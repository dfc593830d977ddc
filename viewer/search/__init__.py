"""The entities of a search task, and charts of them."""
