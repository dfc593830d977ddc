"""The closed loop as a library: collect, credit, train, again."""
