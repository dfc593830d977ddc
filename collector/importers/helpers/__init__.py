"""Read large files with the help of other processes."""
