"""What a stranger wrote, SQL or a chat template, runs in a process of its own, within limits."""
