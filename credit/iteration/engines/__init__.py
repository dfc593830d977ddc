"""Where the batches of an iteration are computed."""
