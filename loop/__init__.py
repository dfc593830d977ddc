"""The closed loop and the warm-up as a library: collect, credit, train, again."""
