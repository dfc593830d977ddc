"""Whether a pretrained language model learns more by one credit than by another."""
