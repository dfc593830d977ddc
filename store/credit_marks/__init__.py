"""What credit was made of, and whether the store still has it."""
