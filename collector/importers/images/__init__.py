"""The images of a log: found, checked, and put into the store."""
