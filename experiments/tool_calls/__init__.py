"""What a small model learns from credit among tools: on tasks that it never played."""
