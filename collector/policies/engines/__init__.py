"""What samples tokens from a model."""
