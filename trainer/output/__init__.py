"""What a training run writes: checkpoints and metrics."""
