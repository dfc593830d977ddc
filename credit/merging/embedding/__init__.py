"""The merge by embeddings: texts as vectors."""
