"""The command line: each command calls one stage."""
