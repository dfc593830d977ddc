"""What the trainer reads: credit columns, step columns, and which steps are kept."""
