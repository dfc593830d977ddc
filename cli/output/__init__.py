"""Output of the command line: console, tables, help, and escapes of control characters."""
