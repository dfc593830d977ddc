"""The output of a training: checkpoints, metrics and the directory that holds them."""
