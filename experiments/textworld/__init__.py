"""Does step credit make a policy learn faster? One warm start, one budget, only credit differs."""
