"""Read logs with the help of other processes."""
