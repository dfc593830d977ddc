"""Loading, scoring and exporting causal language models."""
